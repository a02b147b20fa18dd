/// @file
/// The cost of a hand-over of a fair lock for the server, for different numbers of waiters.
#include "reference/raw_connection.hpp"
#include "rows.hpp"

#include <wire/key_schema.hpp>
#include <wire/script.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace redislock::bench {

namespace {

/// The library's own scripts over one connection, for a holder and a number of waiters. None of them really waits: only
/// the time of their requests is measured.
class Queue {
public:
    Queue(const Target& target, std::size_t waiters)
        : connection_(target.host, target.port),
          name_("bench:fair:" + std::to_string(waiters)),
          queue_(detail::prefixed(detail::queuePrefix, name_)),
          times_(detail::prefixed(detail::queueTimesPrefix, name_)),
          places_(detail::prefixed(detail::queuePlacesPrefix, name_)),
          channels_(detail::lockChannel(name_) + ":"),
          lockSha_(connection_.load(detail::scripts::fairLockLock.text())),
          unlockSha_(connection_.load(detail::scripts::fairLockUnlock.text()))
    {
        expect(lock(first_), "a free fair lock");
        for (std::size_t i = 0; i < waiters; ++i) {
            expect(!lock(++last_), "a place in the queue");
        }
    }

    /// Microseconds for each hand-over: the release, the acquire of the next waiter, and the acquire of a new last
    /// waiter.
    double handOver(Seconds duration)
    {
        std::uint64_t count = 0;
        const auto begin = Clock::now();
        do {
            connection_.command(
                {"EVALSHA", unlockSha_, "4", name_, queue_, times_, places_, holder(first_), "0", "30000", channels_});
            expect(lock(++first_), "the turn of the first in the queue");
            expect(!lock(++last_), "a place in the queue");
            ++count;
        } while (Clock::now() - begin < duration);
        return microseconds(Clock::now() - begin) / static_cast<double>(count);
    }

private:
    /// As long as a holder of the library.
    static std::string holder(std::uint64_t number)
    {
        return "6f1c0f9e-8f1f-4f7e-9d5d-2f1f3b8a7c11:" + std::to_string(number);
    }

    bool lock(std::uint64_t number)
    {
        const auto place = std::string_view("600000"); // no waiter asks again during the measurement
        return connection_
                   .command({"EVALSHA", lockSha_, "4", name_, queue_, times_, places_, holder(number), "600000", "1",
                             place, channels_, "1"})
                   ->type == REDIS_REPLY_NIL;
    }

    RawConnection connection_;
    const std::string name_;
    const std::string queue_;
    const std::string times_;
    const std::string places_;
    const std::string channels_;
    const std::string lockSha_;
    const std::string unlockSha_;
    std::uint64_t first_ = 1'000'000;
    std::uint64_t last_ = first_;
};

} // namespace

Measure fairQueue(const Target& target, std::size_t waiters, std::size_t few)
{
    const auto sideOf = [&](std::size_t count) {
        return [side = std::make_shared<Queue>(target, count)](Seconds duration) { return side->handOver(duration); };
    };
    return inTurn(sideOf(waiters), sideOf(few));
}

} // namespace redislock::bench
