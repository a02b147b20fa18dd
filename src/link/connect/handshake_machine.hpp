/// @file
/// Making a connection usable, step by step.
#pragma once

#include "link/request/event.hpp"
#include "wire/fault.hpp"
#include "wire/reply.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace redislock::detail {

/// What a connection is for.
enum class ServerKind : std::uint8_t {
    master,
    sentinel,
    node, ///< of a cluster: perhaps a replica, which says who has the slots
};

/// What every connection sends before anything else.
struct Handshake {
    std::string username;
    std::string password;
    std::uint32_t database = 0;
    std::string clientName;
    ServerKind kind = ServerKind::master;
    bool needsShardedChannels = false;
};

/// Whether the other side ended the connection in the middle of the handshake.
inline bool isHangUp(const Fault& fault) noexcept
{
    return fault.error == Reason(Cause::hungUp) || fault.error == Reason(Cause::connectionLost);
}

/// The protocol of one connection until it is usable: open it, then HELLO, SELECT, CLIENT SETNAME and PING, all in one
/// packet, each answer judged by itself: one round trip, however much there is to send. With a password, AUTH comes
/// before that, alone. A server that does not know HELLO is asked at the end for its role, a node of a cluster which
/// nodes serve the slots. Of a node that is wanted as such, that is asked in the packet. Pure: no I/O, no clock.
///
/// HELLO tells what kind of server answers: a Sentinel, a node of a cluster with others, or a replica is not used. It
/// keeps the protocol as it is, and every user may send it. Only SELECT is needed: where one of the others is refused,
/// locks may work all the same. Some proxies refuse a command by ending the connection; so there is a bare form without
/// them, which asks something that locks need as well.
class HandshakeMachine {
public:
    /// The connection is there, and secured where that is wanted.
    struct Opened {};
    /// The connection was refused, or has ended, perhaps because TLS has failed on it.
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
        auth,    ///< the answer to AUTH is the next, and no other is due
        hello,   ///< the answer to HELLO is the next
        select,  ///< the answer to SELECT is the next
        setName, ///< the answer to CLIENT SETNAME is the next
        ping,    ///< the answer to PING, or what is asked instead, is the next, and no other is due
        role,    ///< the answer to ROLE is the next, and no other is due
        slots,   ///< the answer to CLUSTER SLOTS is the next, and no other is due
        done,
    };

    explicit HandshakeMachine(const Handshake& handshake, Form form = Form::whole) : handshake_(handshake), form_(form)
    {
    }

    Action resume(const Event& event);

    [[nodiscard]] State state() const noexcept { return state_; }
    /// Whether no other answer is due after the next one.
    [[nodiscard]] bool awaitsLast() const noexcept { return isLast(state_); }
    /// What an operator should know about the server, though it is used; null: nothing.
    [[nodiscard]] const char* warning() const noexcept { return warning_; }
    /// What a node of a cluster said of the slots, where that is wanted; null: nothing.
    [[nodiscard]] const Reply* slots() const noexcept { return slots_ ? &*slots_ : nullptr; }

private:
    [[nodiscard]] bool isLast(State step) const noexcept
    {
        const bool isNode = handshake_.kind == ServerKind::node;
        return step == State::auth || step >= (isNode ? State::slots : State::ping);
    }
    [[nodiscard]] Command commandOf(State step) const;
    Action say(State step);
    [[nodiscard]] State after(State step) const noexcept;
    Action next();
    Action answered(const Reply& reply);
    Action authAnswered(const Reply& reply);
    Action helloAnswered(const Reply& reply);
    Action selectAnswered(const Reply& reply);
    Action pingAnswered(const Reply& reply);
    Action roleAnswered(const Reply& reply);
    Action slotsAnswered(const Reply& reply);
    Action fail(Fault fault);

    const Handshake& handshake_;
    const Form form_;
    bool heard_ = false;           ///< an answer has come
    bool isOfUnknownRole_ = false; ///< HELLO did not tell it
    bool isInCluster_ = false;
    bool isReplica_ = false;
    const char* warning_ = nullptr;
    std::optional<Reply> slots_;
    State state_ = State::opening;
};

} // namespace redislock::detail
