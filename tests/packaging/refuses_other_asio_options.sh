#!/bin/sh
# refuses_other_asio_options.sh <compiler> <folder> [flags]: a program that compiles Asio with other options than the
# library does not link, and the linker says why.
set -eu
compiler=$1
folder=$2
shift 2
mkdir -p "$folder"
printf '#include <redislock/asio_options.hpp>\nint main() {}\n' > "$folder/program.cpp"
links() { # [flags]
    # shellcheck disable=SC2046 # several words
    "$compiler" -std=c++20 "$@" "$folder/program.cpp" -o "$folder/program" $(pkg-config --cflags --libs redislock) \
        > "$folder/output" 2>&1
}
for harmless in -DBOOST_ASIO_NO_DEPRECATED '-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections'; do
    # shellcheck disable=SC2086 # several words
    links "$@" $harmless || { cat "$folder/output"; echo "does not link with $harmless"; exit 1; }
done
for option in ENABLE_HANDLER_TRACKING DISABLE_EPOLL DISABLE_EVENTFD DISABLE_THREADS NO_TYPEID \
        DISABLE_SMALL_BLOCK_RECYCLING RECYCLING_ALLOCATOR_CACHE_SIZE=8 \
        'NO_TYPEID -O2 -ffunction-sections -fdata-sections -Wl,--gc-sections'; do
    # shellcheck disable=SC2086 # several words
    if links "$@" -DBOOST_ASIO_$option; then
        echo "links with BOOST_ASIO_$option"
        exit 1
    fi
    grep -q 'programAndLibraryHaveTheSameAsioOptions' "$folder/output" || { cat "$folder/output"; exit 1; }
done
