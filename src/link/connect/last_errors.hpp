/// @file
/// What the system, the resolver and the server said about errors.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/sentinels.hpp"
#include "wire/fault.hpp"
#include "wire/reply.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace redislock::detail {

class Call;

/// The last words that one client met about each error: the operating system's, the resolver's or the server's own.
/// They go into messages; nothing is decided by them.
///
/// **Thread safety**: safe; no other mutex is taken under its own. Costs nothing where nothing fails.
class LastErrors {
public:
    struct Words {
        std::string text; ///< printable, without secrets; empty: nothing was said
        TimePoint saidAt{};
    };

    /// @param server the address, for messages. @param password as for hide()
    LastErrors(std::string server, const std::string& password);

    /// From now on no words that repeat any of this secret are kept. The last eight secrets are remembered.
    void hide(const std::string& secret);

    /// Notes the words of the system, the resolver or a user's function, or an address.
    void note(Reason reason, std::string_view words) noexcept;
    /// Notes an error reply, if it is one. Of a missing right the rule of an ACL is noted that would grant it.
    /// @param of the request; null: not known
    void noteReply(const Reply& reply, const Call* of = nullptr) noexcept;
    /// The same, where the reason is known better than from the reply.
    void noteReply(Reason reason, std::string_view line, const Call* of = nullptr) noexcept;
    /// Notes a reply that its request cannot have.
    void noteUnfit(const Reply& reply) noexcept;

    [[nodiscard]] const std::string& server() const noexcept { return server_; }
    /// What was last said about that error.
    [[nodiscard]] Words about(const std::error_code& code) const;
    /// One line: where, what and the words, and what to do. @param code an error about the server; see isOfServer()
    [[nodiscard]] std::string sentence(const std::error_code& code) const;

    /// Whether an error is about the server, which a message then names.
    [[nodiscard]] static bool isOfServer(const std::error_code& code) noexcept;

private:
    struct Entry {
        Reason reason;
        Words words;
    };

    void keep(Reason reason, std::string words);
    [[nodiscard]] bool repeatsSecret(std::string_view line) const noexcept;

    const std::string server_;
    mutable std::mutex mutex_;
    std::vector<std::string> secrets_; ///< the latest is the last
    std::vector<Entry> entries_;       ///< one for each reason that was met
};

/// Where to connect to in the place of an announced address. @return nothing: the map threw, which is noted, or named
/// no host
std::optional<Endpoint> mapped(const AddressMap& map, const Endpoint& announced, LastErrors& lastErrors);

} // namespace redislock::detail
