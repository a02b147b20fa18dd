#!/usr/bin/env bash
# spread.sh PROGRAM: runs all tests of the program, spread over several processes at once, since most tests wait most of
# the time. Shows the output of those processes that fail, and ends with the number of tests that ran.
set -euo pipefail

# in a cluster each process has six servers
export GTEST_TOTAL_SHARDS=$((${REDISLOCK_TEST_CLUSTER:-0} == 1 ? 6 : 12)) GTEST_SHARD_INDEX
logs=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$logs"' EXIT
trap 'exit 143' TERM INT
for ((GTEST_SHARD_INDEX = 0; GTEST_SHARD_INDEX < GTEST_TOTAL_SHARDS; ++GTEST_SHARD_INDEX)); do
    "$1" --gtest_brief=1 >"$logs/$GTEST_SHARD_INDEX" 2>&1 &
    pids+=($!)
done
failed=0
for index in "${!pids[@]}"; do
    wait "${pids[index]}" || { failed=1 && cat "$logs/$index"; }
done
pids=()
awk '/ ran\. \(/ { all += $2 } END { print all " tests ran" }' "$logs"/*
exit $failed
