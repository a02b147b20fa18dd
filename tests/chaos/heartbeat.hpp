/// @file
/// Notices when the machine has no time for a chaos run.
#pragma once

#include "history/recorder.hpp"
#include "support/eventually.hpp"

#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

namespace redislock::test::chaos {

/// A thread that wants to run often, and writes down when it could not for a long time: then other threads could not
/// run properly either. Clients can keep their deadlines only on a machine that lets them run.
class Heartbeat {
public:
    explicit Heartbeat(std::shared_ptr<history::Recorder> recorder)
        : recorder_(std::move(recorder)), thread_([this](const std::stop_token& stop) { run(stop); })
    {
    }

private:
    void run(const std::stop_token& stop) const
    {
        using std::chrono::milliseconds;
        constexpr milliseconds beat(10);
        while (!stop.stop_requested()) {
            const auto before = bootTime();
            std::this_thread::sleep_for(beat);
            const auto missed = std::chrono::duration_cast<milliseconds>(bootTime() - before) - beat;
            if (missed > std::chrono::nanoseconds(history::leastStarved)) {
                recorder_->write({.op = history::Op::starved, .count = missed.count()});
            }
        }
    }

    std::shared_ptr<history::Recorder> recorder_;
    std::jthread thread_;
};

} // namespace redislock::test::chaos
