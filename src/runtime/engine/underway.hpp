/// @file
/// What the end of a client waits for.
#pragma once

#include <utility>

namespace redislock::detail {

class Engine;

/// Something is under way whose end the client's shutdown waits for, within its time: what it may leave in Redis is still to be
/// taken back.
class Underway {
public:
    /// Expects the engine's mutex.
    explicit Underway(Engine& engine) noexcept;
    Underway(Underway&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)) {}
    Underway& operator=(Underway&&) = delete;
    /// Expects that mutex to be free.
    ~Underway();

private:
    Engine* engine_;
};

} // namespace redislock::detail
