/// @file
/// Which waiters are woken, when and by whom.
#pragma once

#include "core/hold.hpp"
#include "core/port.hpp"
#include "link/request/channels.hpp"
#include "redislock/identity.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace redislock::detail {

class Core;
struct GrantMessage;

/// The waiters of one client: what they listen to, and which of them tries next.
class Waking {
public:
    explicit Waking(Core& core) noexcept : core_(core) {}

    /// A waiter is about to sleep: subscribes, so that it, or the first waiter, hears of releases.
    void subscribe(NamedLock& named, Waiter& waiter);
    /// A waiter has left its queue.
    void unsubscribe(NamedLock& named, Waiter& waiter) noexcept;
    /// Makes a waiter with a place in Redis hear also of releases by clients that do not know this client's channel.
    void subscribeOwn(NamedLock& named, Waiter& waiter);
    /// A waiter is about to ask. @return whether it hears of a release that grants the lock to its place, from now on:
    /// on one channel for all waiters of this client
    bool hearsOfGrants(NamedLock& named, const Waiter& waiter);
    /// Something came on that channel. @param named the name that has a channel of its own; null: none has
    void heardOfGrant(Notice notice, std::string_view text, NamedLock* named = nullptr);
    /// A message came, or a subscription was confirmed: the first waiter tries once, or all that listen. If the
    /// subscription was refused, the observer is told.
    void heard(NamedLock& named, HolderId of, Notice notice);

    /// Nothing was heard, but another try is worthwhile: the first waiter tries once, or all that ask for themselves.
    void letFirstTry(NamedLock& named);

    /// What follows the release of a hold.
    struct Next {
        std::shared_ptr<HoldCall> call; ///< to be queued right behind the release; null: nothing
        bool quiet = false;             ///< the release need not be published
    };
    /// A hold ends. @param lane of its release
    Next letFollow(const Hold& ended, Lane lane) noexcept;
    /// A release was answered.
    void noteAudience(const HoldCall& call) noexcept;
    /// Makes the next waiter look for itself.
    static void wakeNext(NamedLock& named) noexcept;
    /// The waiter to let in next at the end of a hold; null: nobody waits.
    static Waiter* nextOf(const NamedLock& named) noexcept;

private:
    void joinQueued(NamedLock& named);
    void listenNoLonger();
    [[nodiscard]] bool listensByName() const noexcept;
    void listenByName(NamedLock& named, Waiter& waiter);
    void listens(NamedLock& named, Waiter& waiter, Listening listening);
    void listenNoLonger(NamedLock& named) noexcept;
    void tell(NamedLock& named, const GrantMessage& grant);
    void tellGrants(NamedLock& named, Notice notice);
    [[nodiscard]] std::string channelOfGrants() const;
    [[nodiscard]] std::string channelOfGrants(const NamedLock& named) const;
    void subscribe(NamedLock& named);
    void unsubscribe(NamedLock& named) noexcept;
    bool listensOn(NamedLock& named) noexcept;
    void wakeWaiters(NamedLock& named, HolderId of);
    void readerLeft(NamedLock& named, const Hold& ended) noexcept;
    std::shared_ptr<HoldCall> letTry(NamedLock& named, Waiter* waiter, Lane lane) noexcept;
    std::shared_ptr<HoldCall> submitFor(Waiter& waiter) noexcept;

    Core& core_;
    std::unordered_map<std::string_view, NamedLock*> queued_; ///< by name: those whose waiters have places in Redis
    Listening grants_ = Listening::no;
    ChannelListener grantListener_;
    TimePoint queuedUntil_{}; ///< when the last of those waiters left
    bool looksLater_ = false; ///< will look whether the channel is still needed
};

} // namespace redislock::detail
