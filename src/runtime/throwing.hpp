/// @file
/// From codes to exceptions.
#pragma once

#include "redislock/detail/protocol/printable.hpp"
#include "redislock/error.hpp"

#include <string>
#include <system_error>

namespace redislock::detail {

/// Runs the form that reports codes, and throws what it reports.
template <class Operation>
auto throwing(const std::string& name, const char* verb, Operation operation)
{
    std::error_code ec;
    auto result = operation(ec);
    if (ec) {
        throw LockError(ec, std::string(verb) + " \"" + printable(name) + "\"");
    }
    return result;
}

} // namespace redislock::detail
