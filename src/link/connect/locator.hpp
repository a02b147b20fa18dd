/// @file
/// Finding a server whose address changes.
#pragma once

#include "redislock/endpoint.hpp"
#include "wire/fault.hpp"

#include <functional>
#include <optional>

namespace redislock::detail {

/// Knows where a server is, or finds out. Everything on the io_context's thread.
class Locator {
public:
    /// @param at null: it was not found, for the reason @p why
    using Found = std::function<void(const Endpoint* at, const Fault& why)>;

    Locator() = default;
    Locator(const Locator&) = delete;
    Locator& operator=(const Locator&) = delete;
    virtual ~Locator() = default;

    /// Calls @p found once, perhaps at once, perhaps never if the client ends.
    virtual void locate(Found found) = 0;
    /// How a connection to that address turned out. @param fault nothing: it is usable
    virtual void tried(const Endpoint& at, const std::optional<Fault>& fault) = 0;
    /// Why nothing is found, if a caller does not wait any longer.
    [[nodiscard]] virtual Fault absence() const = 0;
};

} // namespace redislock::detail
