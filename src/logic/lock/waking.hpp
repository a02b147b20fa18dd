/// @file
/// Who is woken, when and by whom.
#pragma once

#include "logic/call/channel_listener.hpp"
#include "logic/call/port.hpp"
#include "logic/lock/hold.hpp"
#include "redislock/identity.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

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
    /// A waiter with a place of its own in Redis hears also of releases by those who do not know this client's channel.
    void subscribeOwn(NamedLock& named, Waiter& waiter);
    /// A waiter is about to ask. @return whether it hears of a grant to its place by a release: on one channel for
    /// all of this client, from now on
    bool hearsOfGrants(NamedLock& named, const Waiter& waiter);
    /// On that channel.
    void heardOfGrant(Notice notice, std::string_view text);
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
    enum class Listening : std::uint8_t { no, asked, confirmed, refused };

    void joinQueued(NamedLock& named);
    void listenNoLonger();
    [[nodiscard]] std::string channelOfGrants() const;
    void subscribe(NamedLock& named);
    void unsubscribe(NamedLock& named) noexcept;
    void wakeWaiters(NamedLock& named, HolderId of);
    std::shared_ptr<HoldCall> letTry(NamedLock& named, Waiter* waiter, Lane lane) noexcept;
    std::shared_ptr<HoldCall> submitFor(Waiter& waiter) noexcept;

    Core& core_;
    std::unordered_map<std::string_view, NamedLock*> queued_; ///< by name: those whose waiters have places of their own
    Listening grants_ = Listening::no;
    ChannelListener grantListener_;
    TimePoint queuedUntil_{}; ///< when the last of them left
    bool looksLater_ = false; ///< whether the channel is still needed
};

} // namespace redislock::detail
