/// @file
/// Locks as people write them by hand over hiredis. Each object has its own connection and belongs to one thread.
#pragma once

#include "measurement.hpp"
#include "reference/raw_connection.hpp"
#include "reference/scripts.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::bench {

inline constexpr std::string_view leaseMs = "30000";

inline std::string channelOf(const std::string& name)
{
    return "redisson_lock__channel:{" + name + "}";
}

/// The lock of the frozen scripts: one EVALSHA to acquire, one to release, each waiting for its answer.
template <class Connection>
class LockOver {
public:
    /// @param holder unique among all holders; as long as a holder of the library, so that requests have the same size.
    LockOver(Connection connection, std::string name, std::string holder)
        : connection_(std::move(connection)),
          name_(std::move(name)),
          channel_(channelOf(name_)),
          holder_(std::move(holder)),
          lockSha_(connection_.load(lockScript)),
          unlockSha_(connection_.load(unlockScript))
    {
    }

    /// Acquires a lock that nobody else holds. @throws std::runtime_error when somebody does.
    void lock()
    {
        const auto reply = connection_.command({"EVALSHA", lockSha_, "1", name_, leaseMs, holder_});
        expect(reply->type == REDIS_REPLY_NIL, "the reply to the reference's lock");
    }
    /// @throws std::runtime_error when this is not the holder.
    void unlock()
    {
        const auto reply = connection_.command({"EVALSHA", unlockSha_, "2", name_, channel_, "0", leaseMs, holder_});
        expect(reply->type == REDIS_REPLY_INTEGER && reply->integer == 1, "the reply to the reference's unlock");
    }

private:
    Connection connection_;
    std::string name_;
    std::string channel_;
    std::string holder_;
    std::string lockSha_;
    std::string unlockSha_;
};
using RawLock = LockOver<RawConnection>;

/// Many locks of the frozen scripts over one connection: all are acquired in one write, then all are released in one.
/// The server always has work, and no client can do less for a lock: this is the server's own limit.
class RawPipeline {
public:
    RawPipeline(const std::string& host, std::uint16_t port, std::vector<std::string> names);

    /// Acquires and releases each lock once. @throws std::runtime_error when somebody else holds one.
    void lockAndUnlockAll();

private:
    RawConnection connection_;
    std::vector<std::string> names_;
    std::vector<std::string> channels_;
    std::string lockSha_;
    std::string unlockSha_;
};

/// SET NX PX, and a sleep after each refusal; released by the usual compare-and-delete script.
class PollingLock {
public:
    PollingLock(const std::string& host, std::uint16_t port, std::string name, std::string token,
                std::chrono::milliseconds sleep);

    void lock();
    /// @throws std::runtime_error when this is not the holder.
    void unlock();

private:
    RawConnection connection_;
    std::string name_;
    std::string token_;
    std::chrono::milliseconds sleep_;
    std::string unlockSha_;
};

} // namespace redislock::bench
