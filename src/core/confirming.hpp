/// @file
/// Grants that others must have before their callers are told.
#pragma once

#include "core/machine/renew_machine.hpp"
#include "core/renewal_call.hpp"
#include "redislock/clock.hpp"
#include "redislock/durability.hpp"
#include "redislock/hold_ref.hpp"
#include "wire/fault.hpp"
#include "wire/slot.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace redislock::detail {

class BackgroundRun;
class Core;

/// A question about one grant. It lives in the operation that waits for the answer.
struct Confirmation {
    enum class State : std::uint8_t {
        none,      ///< not asked
        asked,     ///< no answer yet
        confirmed, ///< so many others have the grant
        refused,   ///< they do not, or nobody can say so
    };
    State state = State::none;
    Reason why{};          ///< when refused
    TimePoint renewedAt{}; ///< when confirmed: when the renewal was sent that the others have
    TimePoint until{};     ///< from then on nobody waits for the answer; the operation judges that by its own clock
    Durability wanted{};
    std::chrono::milliseconds lease{}; ///< of the renewal
    HoldRef hold{};
    Call* call = nullptr;         ///< the operation's: its thread sleeps on the signal
    BackgroundRun* run = nullptr; ///< null: a thread waits
};

/// Asks for the grants of one client whether replicas have them.
///
/// `WAIT` is about what was written over its own connection, and blocks that. So there is a connection for it alone: it
/// sends, in one packet, a renewal of the granted holds and a `WAIT` behind it. When so many replicas have the renewal,
/// they have the grants too, which were made before, over whatever connection. The answer counts for a hold only if
/// its own renewal was answered before with yes: from Redis 7.2 on, `WAIT` after anything but a write answers at once.
///
/// One packet is under way at a time for a slot, and so for a server that is no cluster's: for one durability. Later
/// grants wait for its end, and go together. Each operation judges by its own clock when its time is over: `WAIT` may
/// answer later than it was asked to.
class Confirming {
public:
    explicit Confirming(Core& core) noexcept : core_(core) {}

    /// Asks, now or with the next packet, and wakes the operation when it is answered.
    void ask(Confirmation& confirmation);
    /// The operation waits no longer. Does nothing if it did not ask.
    void withdraw(Confirmation& confirmation) noexcept;

private:
    class Renewal;
    class WaitCall;
    enum class Next : std::uint8_t { confirm, refuse, askAgain, judgeEach };
    struct Verdict {
        Next next;
        Reason why{}; ///< to refuse
    };

    void send();
    [[nodiscard]] bool isUnderWay(Slot slot) const noexcept;
    [[nodiscard]] std::shared_ptr<WaitCall> packet(const Confirmation& first, TimePoint now);
    [[nodiscard]] std::shared_ptr<WaitCall> takeEnded(const Renewal& renewal) noexcept;
    void ended(Renewal& renewal) noexcept;
    void ended(WaitCall& wait) noexcept;
    void judge(const WaitCall& wait, TimePoint now) noexcept;
    void judge(Confirmation& confirmation, const Verdict& verdict, TimePoint now);
    [[nodiscard]] Verdict verdictOn(const WaitCall& wait, TimePoint now) noexcept;
    [[nodiscard]] Verdict verdictOn(const Confirmation& confirmation, const WaitCall& wait,
                                    const std::optional<RenewAnswer>& renewed) noexcept;

    Core& core_;
    std::vector<Confirmation*> waiting_;              ///< for the next packet of their slot
    std::vector<std::shared_ptr<WaitCall>> underWay_; ///< of different slots
    bool isSending_ = false;                          ///< the client's thread is about to send packets
    TimePoint oneByOneUntil_{}; ///< until then, one hold a packet: denying one must not fail the others
};

} // namespace redislock::detail
