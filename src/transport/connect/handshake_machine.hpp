/// @file
/// Making a connection usable, step by step.
#pragma once

#include "redislock/detail/logic/event.hpp"
#include "redislock/detail/protocol/fault.hpp"
#include "redislock/detail/protocol/reply.hpp"

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

/// The protocol of one connection until it is usable: open it, then AUTH, SELECT, CLIENT SETNAME and PING, all in one
/// packet, each answer judged by itself: one way to the server and back, whatever there is to say. Pure: no I/O, no
/// clock.
class HandshakeMachine {
public:
    struct Opened {};
    /// Refused, or ended.
    struct Closed {
        Reason why = Cause::hungUp;
    };
    /// Bytes that are not Redis' protocol.
    struct Garbled {
        Reason why = Errc::notRedis;
    };
    using Event = std::variant<Opened, Closed, Garbled, Reply>;

    using Command = std::vector<std::string>;
    struct Say {
        std::vector<Command> commands;
    };
    /// Read the next answer.
    struct Listen {};
    using Action = std::variant<Say, Listen, Done<Fault>, Done<std::monostate>>;

    enum class State : std::uint8_t {
        opening, ///< the address is being tried
        auth,    ///< the answer to AUTH is the next
        select,  ///< that to SELECT
        setName, ///< that to CLIENT SETNAME
        ping,    ///< that to PING, the last one
        done,
    };

    explicit HandshakeMachine(const Handshake& handshake) : handshake_(handshake) {}

    Action resume(const Event& event);

    [[nodiscard]] State state() const noexcept { return state_; }

private:
    Action say();
    [[nodiscard]] State after(State step) const noexcept;
    Action next();
    Action answered(const Reply& reply);
    Action authAnswered(const Reply& reply);
    Action selectAnswered(const Reply& reply);
    Action pingAnswered(const Reply& reply);
    Action fail(Fault fault);

    const Handshake& handshake_;
    State state_ = State::opening;
};

} // namespace redislock::detail
