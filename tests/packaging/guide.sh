#!/usr/bin/env bash
# guide.sh <work folder> <guide> <readme> <compiler> <option>...: compiles the code of the pages as a reader pastes it:
# whole programs as they are; every other piece after the head that the guide shows, in a function or, if it is a
# coroutine, outside of one.
set -euo pipefail
folder=$1 guide=$2 readme=$3
shift 3
mkdir -p "$folder"
awk -v folder="$folder" '
    /^```cpp$/ { inside = 1; ++block; text = ""; next }
    /^```$/ && inside {
        inside = 0
        if (text ~ /int main\(/) printf "%s", text >folder "/program.cpp"
        else if (text ~ /^#include/) head = head text
        else if (text ~ /^boost::asio::awaitable/) pieces = pieces "namespace block" block " {\n" text "}\n"
        else pieces = pieces "void block" block "()\n{\n" text "}\n"
    }
    inside { text = text $0 "\n" }
    END {
        if (block < 15 || head == "") pieces = "#error the pages have lost their code"
        print head pieces >folder "/pieces.cpp"
    }' "$guide" "$readme"
for each in program pieces; do
    "$@" -fsyntax-only "$folder/$each.cpp"
done
