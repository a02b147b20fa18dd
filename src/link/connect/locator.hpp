/// @file
/// Finding a server whose address changes.
#pragma once

#include "redislock/endpoint.hpp"
#include "wire/fault.hpp"
#include "wire/reply.hpp"

#include <functional>
#include <optional>
#include <string>

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
    /// A node of a cluster has told which node has which slots: the answer to CLUSTER SLOTS in the handshake. Comes
    /// before tried(). @return false: the connection is not to be used, since the node belongs to another cluster
    virtual bool told(const Reply& /*slots*/) { return true; }
    /// An answer that is an error. Any thread, perhaps under the mutex of a connection.
    virtual void noted(const Reply& /*reply*/) noexcept {}
    /// Whose certificate to expect at an address.
    [[nodiscard]] virtual std::string tlsName(const Endpoint& at) const { return at.host; }
    /// Why nothing is found, if a caller does not wait any longer.
    [[nodiscard]] virtual Fault absence() const = 0;
};

} // namespace redislock::detail
