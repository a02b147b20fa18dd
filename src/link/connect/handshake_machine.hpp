/// @file
/// Making a connection usable, step by step.
#pragma once

#include "link/request/event.hpp"
#include "wire/fault.hpp"
#include "wire/reply.hpp"

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

/// Whether the other side ended the connection in the middle of the handshake.
inline bool isHangUp(const Fault& fault) noexcept
{
    return fault.error == Reason(Cause::hungUp) || fault.error == Reason(Cause::connectionLost);
}

/// The protocol of one connection until it is usable: open it, then AUTH, SELECT, CLIENT SETNAME and PING, all in one
/// packet, each answer judged by itself: one round trip, however much there is to send. Pure: no I/O, no clock.
///
/// The last two are optional: where they are refused, locks may work all the same. Some proxies refuse a command by
/// ending the connection; so there is a bare form without the two, which asks something that locks need as well.
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

    enum class Form : std::uint8_t { whole, bare };
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
        ping,    ///< the answer to PING, or what is asked instead, is the next; it is the last one
        done,
    };

    explicit HandshakeMachine(const Handshake& handshake, Form form = Form::whole) : handshake_(handshake), form_(form)
    {
    }

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
    const Form form_;
    bool heard_ = false; ///< an answer has come
    State state_ = State::opening;
};

} // namespace redislock::detail
