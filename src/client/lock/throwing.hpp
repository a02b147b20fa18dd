/// @file
/// Turns codes into exceptions.
#pragma once

#include "client/engine.hpp"
#include "link/connect/last_errors.hpp"
#include "redislock/error.hpp"
#include "redislock/lease_time.hpp"
#include "values/printable.hpp"

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace redislock::detail {

/// A call that failed, for a message.
struct FailedCall {
    std::string call;  ///< what was attempted, on what, at which server
    std::string words; ///< what the server or the system said about it; may be empty

    /// The exception to throw.
    [[nodiscard]] LockError error(const std::error_code& ec) const { return {ec, call, words}; }
};

/// Adds what a client knows about an error.
inline FailedCall failedCallAt(const LastErrors& lastErrors, const std::string& call, const std::error_code& ec)
{
    return {LastErrors::isOfServer(ec) ? call + " at " + lastErrors.server() : call, lastErrors.about(ec).text};
}

/// How a message names a call about a name.
inline std::string callOn(std::string_view name, const char* verb)
{
    return std::string(verb) + " \"" + printable(name) + "\"";
}

/// A failed call about a lock, a semaphore or a latch. @tparam Named the object's state
template <class Named>
FailedCall failedCall(const Named& named, const char* verb, const std::error_code& ec)
{
    return failedCallAt(engineOf(named).lastErrors(), callOn(named.name, verb), ec);
}

/// Calls the form that reports codes, and throws what it reports. @param failed makes the failed call from the code.
template <class Operation, class FailedCallFor>
auto throwing(Operation operation, FailedCallFor failed)
{
    std::error_code ec;
    auto result = operation(ec);
    if (ec) {
        throw failed(ec).error(ec);
    }
    return result;
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

/// Adds the argument, if the error is about it.
template <class Argument>
FailedCall withArgument(FailedCall failed, const std::error_code& ec, Argument argument)
{
    if (ec == Errc::invalidArgument) {
        failed.call += " with " + inWords(argument);
    }
    return failed;
}

/// Throws the error of an acquire; with the exception of its policy nested in it, if there was one.
[[noreturn]] inline void failNesting(const std::exception_ptr& thrown, const std::error_code& ec,
                                     const FailedCall& failed, Lease lease)
{
    if (!thrown) {
        throw withArgument(failed, ec, lease).error(ec);
    }
    try {
        std::rethrow_exception(thrown);
    } catch (...) {
        std::throw_with_nested(
            LockError(ec, failed.call + ": its retry policy threw the exception that is nested in this one"));
    }
}

/// throwing() for a call about a lock, a semaphore or a latch.
template <class Named, class Operation>
auto throwing(const Named& named, const char* verb, Operation operation)
{
    return throwing(std::move(operation), [&](const std::error_code& ec) { return failedCall(named, verb, ec); });
}

/// The same for a call with an argument that may be out of range.
template <class Named, class Argument, class Operation>
auto throwing(const Named& named, const char* verb, Argument argument, Operation operation)
{
    return throwing(std::move(operation),
                    [&](const std::error_code& ec) { return withArgument(failedCall(named, verb, ec), ec, argument); });
}

} // namespace redislock::detail
