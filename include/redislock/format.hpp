/// @file
/// The library's values for fmt: `fmt::print("{} {:>12}", lock.unlock(), redislock::Errc::unreachable)`.
///
/// The only header that needs fmt: a program that includes it must link fmt itself (`fmt::fmt`). redislock.hpp does not
/// include it. An enumerator is formatted as the name that toString() gives, with the options of a string; `HolderId`
/// and `FencingToken` as numbers, an `Endpoint` as its str().
#pragma once

#include "redislock/endpoint.hpp"
#include "redislock/error.hpp"
#include "redislock/fencing.hpp"
#include "redislock/identity.hpp"
#include "redislock/logging_observer.hpp"
#include "redislock/observer.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace redislock::detail {

/// Formats what toString() names.
template <class Enumeration>
struct NameFormatter : fmt::formatter<std::string_view> {
    template <class Context>
    auto format(Enumeration value, Context& context) const
    {
        return fmt::formatter<std::string_view>::format(toString(value), context);
    }
};

/// Formats an enumeration that is a number.
template <class Enumeration>
struct NumberFormatter : fmt::formatter<std::uint64_t> {
    template <class Context>
    auto format(Enumeration value, Context& context) const
    {
        return fmt::formatter<std::uint64_t>::format(static_cast<std::uint64_t>(value), context);
    }
};

} // namespace redislock::detail

/// @cond
template <>
struct fmt::formatter<redislock::Errc> : redislock::detail::NameFormatter<redislock::Errc> {
};
template <>
struct fmt::formatter<redislock::Cause> : redislock::detail::NameFormatter<redislock::Cause> {
};
template <>
struct fmt::formatter<redislock::Unlocked> : redislock::detail::NameFormatter<redislock::Unlocked> {
};
template <>
struct fmt::formatter<redislock::StopAt> : redislock::detail::NameFormatter<redislock::StopAt> {
};
template <>
struct fmt::formatter<redislock::ObjectKind> : redislock::detail::NameFormatter<redislock::ObjectKind> {
};
template <>
struct fmt::formatter<redislock::LossReason> : redislock::detail::NameFormatter<redislock::LossReason> {
};
template <>
struct fmt::formatter<redislock::TokenUse> : redislock::detail::NameFormatter<redislock::TokenUse> {
};
template <>
struct fmt::formatter<redislock::LogLevel> : redislock::detail::NameFormatter<redislock::LogLevel> {
};
template <>
struct fmt::formatter<redislock::HolderId> : redislock::detail::NumberFormatter<redislock::HolderId> {
};
template <>
struct fmt::formatter<redislock::FencingToken> : redislock::detail::NumberFormatter<redislock::FencingToken> {
};
template <>
struct fmt::formatter<redislock::Endpoint> : fmt::formatter<std::string_view> {
    template <class Context>
    auto format(const redislock::Endpoint& endpoint, Context& context) const
    {
        return fmt::formatter<std::string_view>::format(endpoint.str(), context);
    }
};
/// @endcond
