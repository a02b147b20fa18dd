#!/usr/bin/env bash
# check.sh <how> <program> [<argument>...]: runs an example and checks the rules for all examples. How:
#
#   served            beside a private redis-server, whose URL replaces {url}: status 0, and no key is left
#   unreachable=<n>   {url} is an address that refuses: status n, and one line on standard error, with the address
#   help              with --help instead of its arguments: status 0, says its name, and nothing on standard error
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../support/setup.sh"

fail() {
    printf 'FAILED: %s\n' "$1"
    exit 1
}

# The answer of KEYS *, which leaves out keys whose time to live is over: *0 if no key is left.
keys_left() {
    local answer
    exec 3<>"/dev/tcp/127.0.0.1/${redis_url##*:}"
    printf 'KEYS *\r\nQUIT\r\n' >&3
    answer=$(tr -d '\r' <&3)
    exec 3>&-
    printf '%s\n' "${answer%$'\n'+OK}"
}

# Runs the program; its output is in $redis_folder/out and err, and in the output of the test.
run_example() {
    local status=0
    run_child "$@" >"$redis_folder/out" 2>"$redis_folder/err" || status=$?
    cat "$redis_folder/out" "$redis_folder/err"
    return $status
}

how=$1
shift
clean_up_on_exit
status=0
case $how in
    served)
        start_redis
        run_example "${@//"{url}"/$redis_url}" || status=$?
        [ $status -eq 0 ] || fail "exit status $status, not 0"
        # A lease that ends during the example may end in Redis a moment later; no other key ends by itself.
        for ((attempt = 0; attempt < 100; ++attempt)); do
            keys=$(keys_left)
            [ "$keys" != '*0' ] || break
            sleep 0.02
        done
        [ "$keys" = '*0' ] || fail "keys are left: $keys"
        ;;
    unreachable=*)
        redis_folder=$(mktemp -d)
        address=127.0.0.1:1 # tcpmux, which nobody serves
        run_example "${@//"{url}"/redis://$address}" || status=$?
        [ $status -eq "${how#*=}" ] || fail "exit status $status, not ${how#*=}"
        [ "$(wc -l <"$redis_folder/err")" -eq 1 ] || fail "standard error should have one line"
        grep -qF "$address" "$redis_folder/err" || fail "the error does not say which address could not be reached"
        ;;
    help)
        redis_folder=$(mktemp -d)
        run_example "$1" --help || status=$?
        [ $status -eq 0 ] || fail "exit status $status, not 0"
        [ ! -s "$redis_folder/err" ] || fail "standard error should be empty"
        grep -q "$(basename "$1")" "$redis_folder/out" || fail "the help does not name the program"
        ;;
    *) die "there is no check $how" ;;
esac
[ -s "$redis_folder/out" ] || fail "it says nothing of what it does"
