/// @file
/// From a name to one usable connection, step by step.
#pragma once

#include "link/request/event.hpp"
#include "wire/fault.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace redislock::detail {

/// The protocol of one attempt to connect: look the name up, try its addresses, each a little after the one before or
/// as soon as that has failed (RFC 8305), and take the first that is usable, not the first that is open. Pure: no I/O,
/// no clock.
class ConnectMachine {
public:
    struct Resolved {
        std::size_t addresses;
        std::chrono::nanoseconds left; ///< of the time for all addresses
    };
    /// The name could not be looked up.
    struct NotFound {
        Reason why = Cause::hostNotFound;
    };
    /// An address answered all requests of the handshake.
    struct Ready {
        std::size_t address;
    };
    struct Ended {
        Fault fault;
    };
    /// The pause after the last Open is over.
    struct PauseOver {};
    struct TimeOver {
        Reason why = Cause::connectTimedOut; ///< unless an address said more
    };
    using Event = std::variant<Start, Resolved, NotFound, Ready, Ended, PauseOver, TimeOver>;

    struct Resolve {};
    /// Try this address beside those under way; then send PauseOver when the pause is over, unless it is zero.
    struct Open {
        std::size_t address;
        std::chrono::nanoseconds pause;
    };
    struct Wait {};
    using Action = std::variant<Resolve, Open, Wait, Done<Fault>, Done<std::size_t>>;

    enum class State : std::uint8_t {
        idle,      ///< not started
        resolving, ///< the host name is being looked up
        trying,    ///< addresses are being tried
        done,
    };

    /// The longest time between the beginnings of two tries; shorter where not all would begin in time otherwise.
    static constexpr std::chrono::milliseconds longestPause{250};

    Action resume(const Event& event);

    [[nodiscard]] State state() const noexcept { return state_; }

private:
    Action openNext();
    Action ended(Fault fault);
    Action fail();
    Action failFor(Reason why);

    State state_ = State::idle;
    std::size_t addresses_ = 0;
    std::size_t next_ = 0;
    std::size_t underWay_ = 0;
    std::chrono::nanoseconds pause_{0};
    Fault fault_; ///< the failure that says most
};

} // namespace redislock::detail
