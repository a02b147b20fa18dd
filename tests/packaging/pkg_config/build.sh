#!/bin/sh
# build.sh <compiler> <folder for the programs> [flags]: builds a program, and one with a plugin, as a project without
# CMake does, then runs them.
set -eu
sources=$(dirname "$0")/..
compiler=$1
folder=$2
shift 2
mkdir -p "$folder"
for flag in $(pkg-config --cflags redislock); do
    case $flag in
        -I*/include | -pthread) ;;
        *) echo "$flag belongs to a library that users do not include" >&2 && exit 1 ;;
    esac
done
# shellcheck disable=SC2046 # several words
"$compiler" -std=c++20 "$@" "$sources/consumer.cpp" -o "$folder/consumer" $(pkg-config --cflags --libs redislock)
"$folder/consumer"
# shellcheck disable=SC2046 # several words
"$compiler" -std=c++20 "$@" -fPIC -shared "-Wl,--version-script=$sources/unloading/plugin.map" \
    "$sources/unloading/plugin.cpp" -o "$folder/plugin.so" $(pkg-config --cflags --libs redislock)
# shellcheck disable=SC2046 # several words
"$compiler" -std=c++20 "$@" "-DPLUGIN=\"$folder/plugin.so\"" "$sources/unloading/consumer.cpp" -o "$folder/loader" \
    $(pkg-config --cflags redislock) -ldl
"$folder/loader"
