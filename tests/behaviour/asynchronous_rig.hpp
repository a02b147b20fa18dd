/// @file
/// Running coroutines from tests.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <utility>

namespace redislock::test {

/// Runs a coroutine to its end, on one thread. @return what it returns. @throws what it throws.
template <class Function>
auto runCoroutine(Function function)
{
    boost::asio::io_context io;
    auto end = boost::asio::co_spawn(io, std::move(function), boost::asio::use_future);
    io.run();
    return end.get();
}

} // namespace redislock::test
