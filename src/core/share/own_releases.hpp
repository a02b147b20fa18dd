/// @file
/// Whether an acquire was refused only because of a release of its own client.
#pragma once

#include "wire/assert.hpp"

#include <cstdint>

namespace redislock::detail {

/// The releases of one name in a client: how many have begun, and how many are over. Not thread-safe.
class OwnReleases {
public:
    void begin() noexcept { ++begun_; }
    void end() noexcept
    {
        REDISLOCK_ASSERT(underWay());
        ++ended_;
    }
    [[nodiscard]] bool underWay() const noexcept { return begun_ != ended_; }

private:
    friend class Refusals;

    std::uint32_t begun_ = 0;
    std::uint32_t ended_ = 0;
};

/// Judges the refusals of one acquire by the releases of its client.
///
/// An acquire may overtake a release that was queued before it: on another connection, or because the server does not
/// know the script of the release, which is then sent again. The answer to the release may even come before the refusal
/// is looked at. So a refusal is no contention if a release was under way at any time since the request was queued;
/// then the acquire asks again, when no release is under way any more.
class Refusals {
public:
    static constexpr std::uint32_t most = 2; ///< refusals that are passed over: each time, others may hold the lock

    /// The acquire wants a new answer.
    void start() noexcept { passedOver_ = 0; }
    /// The request is queued.
    void queued(const OwnReleases& releases) noexcept
    {
        endedBefore_ = releases.ended_;
        open_ = false;
    }
    /// The request was refused. @return whether to ask again when no release is under way; if not, the refusal is the
    /// answer.
    bool passesOver(const OwnReleases& releases) noexcept
    {
        open_ = releases.begun_ != endedBefore_;
        return open_ && passedOver_++ < most;
    }
    /// Whether the last refusal may be due to a release. A waiter that took it for the answer, and sleeps, asks again
    /// at the end of the releases: nobody else may tell it.
    [[nodiscard]] bool isOpen() const noexcept { return open_; }

private:
    std::uint32_t endedBefore_ = 0; ///< releases that were over when the request was queued
    std::uint32_t passedOver_ = 0;
    bool open_ = false;
};

} // namespace redislock::detail
