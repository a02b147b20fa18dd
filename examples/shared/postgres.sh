# A private PostgreSQL. Sourced after tests/support/setup.sh, whose functions it uses.

postgres_folder=
postgres_url=

# Installs PostgreSQL without the database cluster that Debian's package would make.
need_postgres() {
    local settings=/etc/postgresql-common/createcluster.conf
    if [ -z "$(postgres_programs)" ] && [ "$install" = yes ] && [ ! -e $settings ]; then
        as_root mkdir -p "${settings%/*}"
        echo 'create_main_cluster = false' | as_root tee $settings >/dev/null
    fi
    [ -n "$(postgres_programs)" ] || need_packages postgresql
    [ -n "$(postgres_programs)" ] || die "there is no initdb of PostgreSQL on this machine"
}

# The folder of initdb and postgres, which Debian keeps out of PATH; empty if they are not installed.
postgres_programs() {
    local folder
    for folder in /usr/lib/postgresql/*/bin "$(dirname "$(command -v initdb || true)")"; do
        [ ! -x "$folder/initdb" ] || [ ! -x "$folder/postgres" ] || { echo "$folder" && return; }
    done
}

# Starts a PostgreSQL that listens only on a socket in a temporary folder; sets postgres_url. If the caller is root,
# PostgreSQL runs as the user nobody, because it refuses to run as root. Call clean_up_on_exit before this function, and
# stop_postgres before the script ends.
start_postgres() {
    local programs user=() attempt
    programs=$(postgres_programs)
    postgres_folder=$(mktemp -d)
    if [ "$(id -u)" -eq 0 ]; then
        user=(setpriv --reuid nobody --regid nogroup --clear-groups)
        chown nobody:nogroup "$postgres_folder"
    fi
    cd "$postgres_folder"
    "${user[@]}" "$programs/initdb" --pgdata data --username shop --auth trust --no-sync >log 2>&1 ||
        die "initdb fails: $(tail -n 3 log)"
    "${user[@]}" setpriv --pdeathsig KILL "$programs/postgres" -D data -k "$postgres_folder" \
        -c listen_addresses= -c fsync=off </dev/null >>log 2>&1 &
    postgres_pid=$!
    for ((attempt = 0; attempt < 500; ++attempt)); do
        ! grep -qs "ready to accept connections" log || break
        kill -0 "$postgres_pid" 2>/dev/null || die "PostgreSQL does not start: $(tail -n 3 log)"
        sleep 0.02
    done
    postgres_url="host=$postgres_folder user=shop dbname=postgres"
    cd "$root"
}

stop_postgres() {
    [ -z "$postgres_folder" ] || {
        kill -INT "$postgres_pid" 2>/dev/null || true
        wait "$postgres_pid" 2>/dev/null || true
        rm -rf "$postgres_folder"
    }
}
