/// @file
/// Who is woken, when and by whom.
#pragma once

#include "logic/call/channel_listener.hpp"
#include "logic/call/port.hpp"
#include "logic/lock/hold.hpp"
#include "redislock/identity.hpp"

#include <memory>

namespace redislock::detail {

class Core;

/// The waiters of one client: what they listen to, and which of them tries next.
class Waking {
public:
    explicit Waking(Core& core) noexcept : core_(core) {}

    /// A waiter is about to sleep: has it, or the first one, hear of releases.
    void subscribe(NamedLock& named, Waiter& waiter);
    /// A waiter has left its queue.
    void unsubscribe(NamedLock& named, Waiter& waiter) noexcept;
    /// A message, or a subscription that was confirmed or refused: in each case the first waiter tries once, or all of
    /// those that listen.
    void heard(NamedLock& named, HolderId of, Notice notice);

    /// What follows the release of a hold.
    struct Next {
        std::shared_ptr<HoldCall> call; ///< is to be queued right behind it; null: nothing
        bool quiet = false;             ///< and nobody need be told
    };
    /// At the end of a hold. @param lane where its release goes
    Next handOn(const Hold& ended, Lane lane) noexcept;
    /// A release was answered.
    void noteAudience(const HoldCall& call) noexcept;
    /// Lets the next waiter look for itself.
    static void wakeNext(NamedLock& named) noexcept;
    /// Who is let in next at the end of a hold; null: nobody waits.
    static Waiter* nextOf(const NamedLock& named) noexcept;

private:
    void subscribe(NamedLock& named);
    void unsubscribe(NamedLock& named) noexcept;
    void wakeWaiters(NamedLock& named, HolderId of);
    std::shared_ptr<HoldCall> letTry(NamedLock& named, Waiter* waiter, Lane lane) noexcept;
    std::shared_ptr<HoldCall> submitFor(Waiter& waiter) noexcept;

    Core& core_;
};

} // namespace redislock::detail
