#!/usr/bin/env bash
# with_redis.sh <program> [<argument>...]: runs the program beside a private redis-server whose URL replaces {url}.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../support/setup.sh"

clean_up_on_exit
start_redis
run_child "${@//"{url}"/$redis_url}"
