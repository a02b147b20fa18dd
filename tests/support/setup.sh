# The common functions of examples/run, tests/run, bench/run and the CI: installing missing packages, building, a
# private redis-server. Sourced, never run. The caller has set -euo pipefail and may set install=no before calling
# need_packages.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/release
install=yes

say() { printf '==> %s\n' "$*" >&2; }
die() {
    printf '%s: %s\n' "$0" "$*" >&2
    exit 2
}

# --- Packages ---------------------------------------------------------------------------------------------------------

# True if the contents of the Debian package are on this machine, wherever they came from. Asks only this machine.
have() {
    case $1 in
        cmake | g++ | pkg-config | openssl | redis-server | tmux | zsh | fish | clang | clang-format | git | \
            chromium | python3) command -v "$1" ;;
        ninja-build) command -v ninja ;;
        libboost-dev) [ "$(boost_version)" -ge 108100 ] ;;
        libhiredis-dev) have_file include/hiredis/hiredis.h ;;
        libssl-dev) have_file include/openssl/ssl.h ;;
        libfmt-dev) have_file include/fmt/format.h ;;
        libcli11-dev) have_file include/CLI/CLI.hpp ;;
        libgtest-dev) have_file include/gtest/gtest.h && have_library gtest ;;
        libgmock-dev) have_file include/gmock/gmock.h && have_library gmock ;;
        prometheus-cpp-dev) have_file include/prometheus/registry.h ;;
        nlohmann-json3-dev) have_file include/nlohmann/json.hpp ;;
        libclang-rt-dev) compgen -G "/usr/lib*/llvm-*/lib/clang/*/lib/*/libclang_rt.fuzzer-*.a" ;;
        openjdk-17-jdk-headless) command -v javac ;;
        maven) command -v mvn ;;
        libbenchmark-dev) have_file include/benchmark/benchmark.h ;;
        *) [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>&1)" = installed ] ;;
    esac >/dev/null
}
have_file() { [ -e "/usr/$1" ] || [ -e "/usr/local/$1" ]; }
have_library() { compgen -G "/usr/lib*/lib$1.*" || compgen -G "/usr/lib/*/lib$1.*" || compgen -G "/usr/local/lib*/lib$1.*"; }

# The newest Boost among the places the build looks in, as its own number (1.81.0 is 108100); 0 when there is none.
boost_version() {
    local newest=0 folder version
    for folder in "${BOOST_ROOT:-/usr}/include" "$root/.deps/usr/include" /usr/local/include /usr/include; do
        [ -e "$folder/boost/version.hpp" ] || continue
        version=$(sed -n 's/^#define BOOST_VERSION \([0-9]*\).*/\1/p' "$folder/boost/version.hpp")
        [ "${version:-0}" -le "$newest" ] || newest=$version
    done
    echo "$newest"
}

# need_packages <package>... : installs the packages whose contents are missing; does nothing if none are missing.
# libboost-dev stands for any package with Boost 1.81 or newer.
need_packages() {
    local package missing=()
    for package in "$@"; do
        have "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$install" = no ]; then
        say "Missing, and not installed because of --no-install: ${missing[*]}"
        return 0
    fi
    command -v apt-get >/dev/null ||
        die "please install what these Debian packages hold, then run this again: ${missing[*]}
    (libboost-dev: Boost 1.81 or newer, its headers; redis-server: Redis 6.2 or newer, or Valkey)"
    say "Missing here: ${missing[*]}"
    as_root true || die "please install as root, then run this again: apt-get install ${missing[*]}
    (libboost-dev: libboost1.81-dev where it is older than 1.81)"
    (apt_install "${missing[@]}")
    for package in "${missing[@]}"; do
        have "$package" || die "$package is still missing"
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        command -v sudo >/dev/null && sudo "$@"
    fi
}
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -o Dpkg::Lock::Timeout=120 "$@"; }
candidate() { LC_ALL=C apt-cache policy "$1" | sed -n 's/^ *Candidate: \([^(].*\)/\1/p'; }

apt_install() {
    local package wanted=() fresh=no
    for package in "$@"; do
        [ -n "$(candidate "$package")" ] || fresh=yes # no package lists yet
    done
    if [ $fresh = yes ]; then
        say "Updating the package lists"
        apt update
    fi
    for package in "$@"; do
        [ "$package" = libboost-dev ] || wanted+=("$package")
    done
    if [[ " $* " == *" libboost-dev "* ]]; then
        package=libboost-dev
        dpkg --compare-versions "$(candidate libboost-dev)" ge 1.81 || package=libboost1.81-dev
        if apt install -s --no-remove "$package" >/dev/null 2>&1; then
            wanted+=("$package")
        else
            unpack_boost "$package"
        fi
    fi
    [ ${#wanted[@]} -gt 0 ] || return 0

    say "Installing: ${wanted[*]}"
    keep_services_down
    if ! apt install -y --no-remove --no-install-recommends "${wanted[@]}"; then
        say "Again, with fresh package lists"
        apt update
        apt install -y --no-remove --no-install-recommends "${wanted[@]}"
    fi
}

# If headers of an older Boost are installed and other packages need them: leaves them alone, and builds with a private
# copy.
unpack_boost() {
    local package=$1
    if [ "$package" = libboost-dev ]; then # only points to the package with the version in its name
        package=$(apt-cache depends libboost-dev | sed -n 's/^ *Depends: //p' | head -n 1)
    fi
    say "Unpacking $package into .deps/: an older Boost is installed and stays"
    mkdir -p "$root/.deps"
    cd "$root/.deps"
    apt-get -q download "$package" || { apt update && apt-get -q download "$package"; }
    dpkg -x "$package"_*.deb unpacked
    mv unpacked/usr . # all of it or nothing
    rm -r unpacked "$package"_*.deb
    cd "$root"
}

# Installing redis-server would start a system service; Debian asks this file first. Our file exists until the subshell
# ends.
keep_services_down() {
    local policy=/usr/sbin/policy-rc.d
    [ ! -e $policy ] || return 0
    trap "as_root rm -f $policy" EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
    as_root chmod 755 $policy
}

# --- Building ---------------------------------------------------------------------------------------------------------

# configure <TESTS|EXAMPLES|BENCH>... [-D...]: one build folder for all scripts; each script switches on the parts that
# it needs and leaves on the parts that another script switched on.
configure() {
    local part options=()
    if [ ! -e "$build/CMakeCache.txt" ]; then
        for part in TESTS EXAMPLES BENCH TOOL; do
            options+=("-DREDISLOCK_BUILD_$part=OFF")
        done
    fi
    for part in "$@"; do
        case $part in
            -*) options+=("$part") ;;
            *) options+=("-DREDISLOCK_BUILD_$part=ON") ;;
        esac
    done
    local output
    output=$(cd "$root" && cmake --preset release "${options[@]}" 2>&1) || {
        printf '%s\n' "$output" >&2
        exit 2
    }
}

# compile <target>...
compile() {
    cmake --build "$build" --parallel "$(nproc)" --target "$@" >&2
}

# --- A private redis-server -------------------------------------------------------------------------------------------

redis_pid=
redis_folder=
redis_url=
child_pid=

# Starts a server on a free port in a temporary folder; sets redis_url. Call clean_up_on_exit first.
start_redis() {
    local server port attempt bound=()
    server=$(command -v redis-server || command -v valkey-server) || die "no redis-server on this machine"
    redis_folder=$(mktemp -d)
    # The server ends even if this script is killed with SIGKILL.
    ! command -v setpriv >/dev/null || bound=(setpriv --pdeathsig KILL)
    for attempt in {1..20}; do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        ${bound[@]+"${bound[@]}"} "$server" --port $port --bind 127.0.0.1 --dir "$redis_folder" --save "" \
            --appendonly no --logfile "$redis_folder/log" </dev/null >/dev/null 2>&1 &
        redis_pid=$!
        until grep -qs "Ready to accept connections" "$redis_folder/log"; do
            kill -0 $redis_pid 2>/dev/null || continue 2 # the port was taken
            sleep 0.02
        done
        redis_url=redis://127.0.0.1:$port
        return
    done
    die "redis-server does not start: $(tail -n 3 "$redis_folder/log" 2>/dev/null)"
}

# From here on nothing outlives the script: neither the program under run_child, nor the server, nor its folder.
clean_up_on_exit() {
    trap clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}
clean_up() {
    trap '' HUP INT TERM
    if [ -n "$child_pid" ]; then
        kill -TERM -- "-$child_pid" 2>/dev/null || true
        wait "$child_pid" 2>/dev/null || true
    fi
    if [ -n "$redis_pid" ]; then
        kill -KILL "$redis_pid" 2>/dev/null || true
        wait "$redis_pid" 2>/dev/null || true
    fi
    [ -z "$redis_folder" ] || rm -rf "$redis_folder"
}

# Runs a command in a process group of its own and gives its exit status. In the background, because bash handles a
# signal only after a foreground command has ended; in its own group, so that its children end with it.
run_child() {
    local status=0
    set -m
    "$@" &
    child_pid=$!
    set +m
    wait "$child_pid" || status=$?
    child_pid=
    return $status
}
