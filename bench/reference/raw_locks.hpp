/// @file
/// Locks as people write them by hand over hiredis. Each object has its own connection and belongs to one thread.
#pragma once

#include "reference/raw_connection.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace redislock::bench {

/// The lock of the frozen scripts: one EVALSHA to acquire, one to release, each waiting for its answer.
class RawLock {
public:
    /// @param holder unique among all holders; as long as a holder of the library, so that requests have the same size.
    RawLock(const std::string& host, std::uint16_t port, std::string name, std::string holder);

    /// Acquires a lock that nobody else holds. @throws std::runtime_error when somebody does.
    void lock();
    /// @throws std::runtime_error when this is not the holder.
    void unlock();

private:
    RawConnection connection_;
    std::string name_;
    std::string channel_;
    std::string holder_;
    std::string lockSha_;
    std::string unlockSha_;
};

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
