/// @file
/// A cluster whose slots move while they are used.
#pragma once

#include "support/deployments.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {

/// Three masters with a replica each, and a thread that moves the slots of some names between the masters again and
/// again, some of them half moved for up to 2 s, and has a replica take over as planned now and then. Neither loses a
/// write, and nothing else changes who has a slot. Thread safety: safe.
class SlotMover {
public:
    /// @param most between two moves
    SlotMover(std::vector<std::string> names, std::chrono::milliseconds most, std::uint64_t seed);
    SlotMover(SlotMover&&) = delete;
    ~SlotMover() { stop(); }

    [[nodiscard]] const Cluster& cluster() const noexcept { return cluster_; }
    /// Nothing moves while the result lives; it is false if something is moving.
    /// @throws std::runtime_error if a move has failed
    [[nodiscard]] std::unique_lock<std::mutex> tryPause();
    /// The node that has the slot of the first name; only in a pause, or after stop().
    [[nodiscard]] std::size_t owner() const noexcept { return owner_; }
    /// Ends the thread, after what it has begun.
    void stop();

    [[nodiscard]] std::size_t moves() const noexcept { return moves_; }
    [[nodiscard]] std::size_t switchOvers() const noexcept { return switchOvers_; }

private:
    void run(const std::stop_token& end);
    void move(const std::string& name);
    void switchOver(const std::string& name);
    void sleep(std::chrono::milliseconds most);

    const std::vector<std::string> names_;
    const std::chrono::milliseconds most_;
    std::mt19937_64 random_;
    Cluster cluster_{3, 1};
    std::mutex moving_;
    std::size_t owner_;
    std::string failed_;
    std::atomic<std::size_t> moves_{0};
    std::atomic<std::size_t> switchOvers_{0};
    std::jthread thread_;
};

} // namespace redislock::test
