#!/bin/sh
# size.sh <ceiling> <compiler> <generator> <sources> <folder> [flags]: builds and installs a release, then the README's
# program in empty folders, by CMake's package and by pkg-config, neither of which may be larger than the ceiling, in
# KiB, when it is stripped; then a library with fmt inside, and the program without any shared library.
set -eu
ceiling=$1 compiler=$2 generator=$3 sources=$4 folder=$5
shift 5

# install_library <name> <option>...
install_library() {
    name=$1
    shift
    cmake -G "$generator" -S "$sources" -B "$folder/$name/build" "-DCMAKE_CXX_COMPILER=$compiler" \
        -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=8 "-DCMAKE_INSTALL_PREFIX=$folder/$name/prefix" \
        -DCMAKE_INSTALL_LIBDIR=lib -DREDISLOCK_BUILD_TESTS=OFF -DREDISLOCK_BUILD_EXAMPLES=OFF \
        -DREDISLOCK_BUILD_BENCH=OFF -DREDISLOCK_BUILD_TOOL=OFF "$@"
    cmake --build "$folder/$name/build" --target install --parallel 2
    export PKG_CONFIG_PATH="$folder/$name/prefix/lib/pkgconfig"
}

# check_size <program>
check_size() {
    "$1" --help
    strip -o "$1.stripped" "$1"
    size=$(($(wc -c <"$1.stripped") / 1024))
    echo "$1: $size KiB, ceiling $ceiling KiB"
    [ "$size" -lt "$ceiling" ]
}

rm -rf "$folder"
mkdir -p "$folder/by_package" "$folder/by_pkg_config"
hello=$sources/examples/hello_lock.cpp

install_library release -DCMAKE_BUILD_TYPE=Release
cat >"$folder/by_package/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(hello LANGUAGES CXX)
find_package(redislock REQUIRED)
add_executable(hello "$hello")
target_link_libraries(hello PRIVATE redislock::redislock)
END
cmake -G "$generator" -S "$folder/by_package" -B "$folder/by_package/build" "-DCMAKE_CXX_COMPILER=$compiler" \
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$folder/release/prefix"
cmake --build "$folder/by_package/build"
check_size "$folder/by_package/build/hello"
# shellcheck disable=SC2046 # several words
"$compiler" -std=c++20 -O2 "$@" "$hello" -o "$folder/by_pkg_config/hello" $(pkg-config --cflags --libs redislock)
check_size "$folder/by_pkg_config/hello"

install_library with_fmt -DCMAKE_BUILD_TYPE=None -DREDISLOCK_FMT_HEADER_ONLY=ON # None: the quickest to compile
# shellcheck disable=SC2046 # several words
"$compiler" -std=c++20 "$@" -static "$hello" -o "$folder/static" $(pkg-config --cflags --libs --static redislock)
"$folder/static" --help
