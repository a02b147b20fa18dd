#!/bin/sh
# header_only.sh <compiler> <object> <program> [flags]: builds a program without CMake and runs it; the object is the
# library's one header, compiled.
set -eu
compiler=$1
object=$2
program=$3
shift 3
mkdir -p "$(dirname "$program")"
# shellcheck disable=SC2046 # several words
"$compiler" -std=c++20 "$@" "$(dirname "$0")/../consumer.cpp" "$object" -o "$program" \
    $(pkg-config --cflags --libs redislock-header-only)
"$program"
