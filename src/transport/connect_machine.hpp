/// @file
/// Making a connection usable, step by step.
#pragma once

#include "redislock/detail/logic/event.hpp"
#include "redislock/detail/protocol/fault.hpp"
#include "redislock/detail/protocol/reply.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace redislock::detail {

/// What every connection says before anything else.
struct Handshake {
    std::string username;
    std::string password;
    std::uint32_t database = 0;
    std::string clientName;
};

/// The protocol of one attempt to connect: look up, try each address in turn, then AUTH, SELECT, CLIENT SETNAME and PING, one
/// at a time, each answer judged by itself. Pure: no I/O, no clock.
class ConnectMachine {
public:
    struct Resolved {
        std::size_t addresses;
    };
    struct Opened {};
    /// Could not be looked up, refused, ended or timed out.
    struct Closed {};
    /// Bytes that are not Redis' protocol.
    struct Garbled {};
    using Event = std::variant<Start, Resolved, Opened, Closed, Garbled, Reply>;

    struct Resolve {};
    struct Open {
        std::size_t address;
    };
    struct Command {
        std::vector<std::string> arguments;
    };
    using Action = std::variant<Resolve, Open, Command, Done<Fault>, Done<std::monostate>>;

    enum class State : std::uint8_t {
        idle,      ///< not started
        resolving, ///< the host name is being looked up
        opening,   ///< an address is being tried
        auth,      ///< AUTH was sent
        select,    ///< SELECT was sent
        setName,   ///< CLIENT SETNAME was sent
        ping,      ///< PING was sent
        done,
    };

    explicit ConnectMachine(const Handshake& handshake) : handshake_(handshake) {}

    Action resume(const Event& event);

    [[nodiscard]] State state() const noexcept { return state_; }

private:
    Action openNext();
    Action nextCommand();
    Action answered(const Reply& reply);
    Action authAnswered(const Reply& reply);
    Action selectAnswered(const Reply& reply);
    Action pingAnswered(const Reply& reply);
    Action fail(Fault fault);

    const Handshake& handshake_;
    State state_ = State::idle;
    std::size_t addresses_ = 0;
    std::size_t next_ = 0;
};

} // namespace redislock::detail
