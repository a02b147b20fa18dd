#!/bin/sh
# build.sh <compiler> <folder for the program> [flags]: builds a program as a project without CMake does, then runs it.
set -eu
source=$(dirname "$0")/../consumer.cpp
compiler=$1
program=$2/consumer
shift 2
mkdir -p "$(dirname "$program")"
# shellcheck disable=SC2046 # several words
"$compiler" -std=c++20 "$@" "$source" -o "$program" $(pkg-config --cflags --libs redislock)
"$program"
