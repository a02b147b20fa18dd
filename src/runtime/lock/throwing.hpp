/// @file
/// From codes to exceptions.
#pragma once

#include "redislock/detail/protocol/printable.hpp"
#include "redislock/error.hpp"
#include "redislock/lease_time.hpp"

#include <cstdint>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

namespace redislock::detail {

/// Runs the form that reports codes, and throws what it reports. @param context called with the code, for the message.
template <class Context, class Operation>
auto throwing(Context context, Operation operation)
{
    std::error_code ec;
    auto result = operation(ec);
    if (ec) {
        throw LockError(ec, context(ec));
    }
    return result;
}

/// What a message says of a call about a name.
inline std::string callOn(const std::string& name, const char* verb)
{
    return std::string(verb) + " \"" + printable(name) + "\"";
}

inline std::string inWords(Lease lease)
{
    return lease.isRenewed() ? "the lease keepRenewing"
                             : "a lease of " + std::to_string(lease.fixed().count()) + " ms (10 ms to 30 days)";
}

inline std::string inWords(std::int64_t number)
{
    return std::to_string(number);
}

/// What a message says of a call, and the argument where that is what is wrong.
template <class Argument>
std::string withArgument(const std::string& call, const std::error_code& ec, Argument argument)
{
    return ec == Errc::invalidArgument ? call + " with " + inWords(argument) : call;
}

template <class Argument>
std::string callOn(const std::string& name, const char* verb, const std::error_code& ec, Argument argument)
{
    return withArgument(callOn(name, verb), ec, argument);
}

/// Throws what a call that acquires failed with; around what a policy threw, if it did.
[[noreturn]] inline void failNesting(const std::exception_ptr& thrown, const std::error_code& ec,
                                     const std::string& call, Lease lease)
{
    if (!thrown) {
        throw LockError(ec, withArgument(call, ec, lease));
    }
    try {
        std::rethrow_exception(thrown);
    } catch (...) {
        std::throw_with_nested(LockError(ec, call + ", whose retry policy threw an exception"));
    }
}

/// The same for a call about a name.
template <class Operation>
auto throwing(const std::string& name, const char* verb, Operation operation)
{
    return throwing([&](const std::error_code&) { return callOn(name, verb); }, std::move(operation));
}

/// The same for a call with an argument that may be outside its range.
template <class Argument, class Operation>
auto throwing(const std::string& name, const char* verb, Argument argument, Operation operation)
{
    return throwing([&](const std::error_code& ec) { return callOn(name, verb, ec, argument); }, std::move(operation));
}

} // namespace redislock::detail
