/// @file
/// From codes to exceptions.
#pragma once

#include "redislock/detail/protocol/printable.hpp"
#include "redislock/error.hpp"

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
inline std::string describe(const char* verb, const std::string& name)
{
    return std::string(verb) + " \"" + printable(name) + "\"";
}

/// throwing() for a call about a name.
template <class Operation>
auto throwing(const std::string& name, const char* verb, Operation operation)
{
    return throwing([&](const std::error_code&) { return describe(verb, name); }, std::move(operation));
}

} // namespace redislock::detail
