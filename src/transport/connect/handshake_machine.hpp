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

/// What every connection sends before anything else.
struct Handshake {
    std::string username;
    std::string password;
    std::uint32_t database = 0;
    std::string clientName;
};

/// The protocol of one connection until it is usable: open it, then AUTH, SELECT, CLIENT SETNAME and PING, all in one
/// packet, each answer judged by itself: one round trip, however much there is to send. Pure: no I/O, no clock.
class HandshakeMachine {
public:
    struct Opened {};
    /// The connection was refused, or has ended.
    struct Closed {
        Reason why = Cause::hungUp;
    };
    /// Bytes came that are not Redis' protocol.
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
        select,  ///< the answer to SELECT is the next
        setName, ///< the answer to CLIENT SETNAME is the next
        ping,    ///< the answer to PING, the last one, is the next
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
    bool nameIsRefused_ = false; ///< by an error that is not known: if the connection ends now, that is why
};

} // namespace redislock::detail
