#!/usr/bin/env bash
# guide.sh <guide> <work folder> <compiler> <option>...: compiles the code in the guide. A block that begins with the
# type of a coroutine is compiled as it is; the other blocks are bodies of functions, after declarations of the names
# that the guide assumes.
set -euo pipefail
guide=$1 folder=$2
shift 2
mkdir -p "$folder"
{
    cat <<'END'
#include <redislock/redislock.hpp>
#include <redislock/testing/redis_server.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using redislock::keepRenewing;
using redislock::oneAttempt;

struct Server {
    void stopAccepting() {}
    void requestStop() {}
};
int sell(const std::stop_token& stop = {});
int sellOne(int id);
boost::asio::awaitable<void> sellAll();
boost::asio::awaitable<void> reserve();
void process(int);
void settle();
void append(int);
void log(std::string_view);
END
    awk '/^```cpp$/ { inside = 1; ++block; first = 1; next }
         /^```$/ && inside { inside = 0; if (!whole) print "}\n}"; next }
         inside && first { first = 0; whole = /^boost::asio::awaitable/
             if (!whole) print "void block" block "(redislock::Client& client, redislock::RedisLock& lock, " \
                 "redislock::RedisLock& other, redislock::RedisLock& third, redislock::TokenGate& gate, " \
                 "const std::vector<int>& orders, int entry, std::stop_token stop, Server& server, Server& workers)\n{\n" \
                 "(void)client, (void)lock, (void)other, (void)third, (void)gate, (void)orders, (void)entry, " \
                 "(void)stop, (void)server, (void)workers;\n{" }
         inside { print }
         END { if (block < 10) { print "#error the guide has lost its blocks" } }' "$guide"
} >"$folder/guide.cpp"
exec "$@" -fsyntax-only "$folder/guide.cpp"
