#!/usr/bin/env bash
# deb.sh <folder with packages> <empty folder> [option of cmake]...: unpacks the packages into a root of their own, and
# builds and runs a program and the tool with nothing but what is there and what the packages depend on.
set -euo pipefail
packages=$1 folder=$2
shift 2
sources=$(cd "$(dirname "$0")" && pwd)
fail() { printf '%s\n' "$*" >&2 && exit 1; }

rm -rf "$folder"
mkdir -p "$folder/root"
for package in "$packages"/*.deb; do
    dpkg-deb -x "$package" "$folder/root"
    dpkg-deb --show --showformat='${Package} ${Version}: ${Depends}\n' "$package"
done >"$folder/depends"
cat "$folder/depends"
usr=$folder/root/usr

# Each package with which the library was compiled is named. A tool that links the static library needs no package of it.
for package in libboost1 libhiredis-dev libfmt-dev; do
    grep -q "^libredislock-dev .*: .*$package" "$folder/depends" || fail "libredislock-dev does not depend on $package"
done
grep -q '^redislock-tool .*: .*libc6' "$folder/depends" || fail "redislock-tool depends on no library"

library=$(find "$usr/lib" -name 'libredislock.*' -printf '%h\n' -quit)
export LD_LIBRARY_PATH=$library
cmake -S "$sources/find_package" -B "$folder/find_package" "-DCMAKE_PREFIX_PATH=$usr" "$@" >"$folder/log"
grep -q "^redislock_DIR:PATH=$usr" "$folder/find_package/CMakeCache.txt" || fail "another redislock was found"
cmake --build "$folder/find_package"
"$folder/find_package/consumer"
version=$(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --modversion redislock)
grep -q "^libredislock-dev $version-" "$folder/depends" || fail "pkg-config says $version"

[[ $("$usr/bin/redislock" --version) == *"$version"* ]] || fail "the tool has another version"
gzip -dc "$usr/share/man/man1/redislock.1.gz" | grep -q '^\.TH' || fail "no manual of the tool"
bash -c '. "$0" && complete -p redislock' "$usr/share/bash-completion/completions/redislock"
for package in libredislock-dev redislock-tool; do
    grep -q "The redislock authors" "$usr/share/doc/$package/copyright" || fail "no licence in $package"
    gzip -t "$usr/share/doc/$package/changelog.Debian.gz"
done
