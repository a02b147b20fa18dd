// Coroutines that share a lock, and work that is cancelled when its lock is lost.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

/// Work that takes a while and blocks no thread.
asio::awaitable<void> work(std::chrono::milliseconds time)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> takeTurns(redislock::RedisLock lock, int& turns)
{
    for (int i = 0; i < 3; ++i) {
        redislock::LockGuard held = co_await lock.asyncLock(); // no thread waits
        ++turns;
        co_await work(1ms);
        co_await held.asyncRelease();
    }
}

/// @return whether the work was cancelled.
asio::awaitable<bool> loseIt(redislock::RedisLock lock)
{
    redislock::LockGuard held = co_await lock.asyncLock(100ms); // a fixed lease, too short
    try {
        co_await asio::co_spawn(co_await asio::this_coro::executor, work(1min),
                                redislock::cancelOnLoss(held, redislock::StopAt::lost));
    } catch (const boost::system::system_error& error) {
        std::cout << "the work ended with the lock: " << error.what() << '\n';
        co_return true;
    }
    co_return false;
}

bool useCoroutines(const std::string& url)
{
    const redislock::Client client(url);
    client.connect(); // reports a wrong address here, not after the first wait
    const redislock::RedisLock lock = client.getLock("example:turn");
    asio::io_context io;
    int turns = 0;
    bool cancelled = false;
    const auto ended = [](std::exception_ptr error) {
        if (error) {
            std::rethrow_exception(error); // the exception comes out of run()
        }
    };
    asio::co_spawn(io, takeTurns(lock, turns), ended);
    asio::co_spawn(io, takeTurns(lock, turns), ended);
    asio::co_spawn(io, loseIt(client.getLock("example:slow")), [&](std::exception_ptr error, bool was) {
        cancelled = was;
        ended(error);
    });
    io.run();
    std::cout << turns << " turns were taken\n";
    return turns == 6 && cancelled;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(
        argc, argv, "Lets two coroutines take turns under a lock; a third loses its lock in the middle of its work.",
        useCoroutines);
}
