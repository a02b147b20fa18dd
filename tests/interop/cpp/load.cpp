#include "load.hpp"

#include <chrono>
#include <exception>
#include <random>
#include <thread>
#include <utility>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;

/// Reports losses.
class Witness : public Observer {
public:
    explicit Witness(Load::Tell tell) : tell_(std::move(tell)) {}

    void lost(const LockEvent& event, LossReason) noexcept override { tell("lost", event, ""); }
    void atRisk(const LockEvent& event, std::chrono::nanoseconds validFor, LossReason) noexcept override
    {
        tell("risk", event, " valid for " + std::to_string(validFor / 1ms) + " ms");
    }
    void renewalFailed(const LockEvent& event, std::error_code error) noexcept override
    {
        tell("risk", event, " renewal failed: " + error.message());
    }

private:
    void tell(std::string_view how, const LockEvent& event, const std::string& what) const
    {
        tell_("observer", how, std::string(event.name) + " of " + std::string(event.holder) + what);
    }

    Load::Tell tell_;
};

} // namespace

Load::Load(Make make, Tell tell)
    : make_(std::move(make)), tell_(std::move(tell)), observer_(std::make_shared<Witness>(tell_))
{
}

std::optional<std::string> Load::run(const std::string& thread, const std::vector<std::string>& words)
{
    const auto& kind = words.at(0);
    if (kind == "end") {
        ending_ = true;
        return "";
    }
    const auto& name = words.at(2);
    const auto& style = words.at(3);
    const std::chrono::milliseconds hold(std::stoi(words.at(4)));
    const auto pause = static_cast<unsigned>(std::stoi(words.at(5)));
    std::call_once(once_, [&] { objects_.emplace(make_(observer_)); });
    tell_(thread, "client", objects_->id());
    std::minstd_rand random(std::random_device{}());
    while (!ending_) {
        std::optional<Objects> own;
        if (style == "client") {
            own.emplace(make_(observer_));
            tell_(thread, "client", own->id());
        }
        const bool isRead = kind == "readWrite" && random() % 4 != 0;
        const auto half = kind == "readWrite" ? (isRead ? "readLock" : "writeLock") : kind;
        turn(thread, isRead ? "r" : "w", (own ? *own : *objects_).turnstile(half, name, style != "keep"), hold);
        // Without a pause the lock would nearly always go on to a thread of the same process.
        if (pause > 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1 + random() % pause));
        }
    }
    return "";
}

void Load::turn(const std::string& thread, const std::string& mode, const Turnstile& door,
                std::chrono::milliseconds hold)
{
    const auto asked = std::chrono::steady_clock::now();
    door.enter();
    const auto waited = (std::chrono::steady_clock::now() - asked) / 1us;
    tell_(thread, "in", std::to_string(waited) + ' ' + mode);
    if (hold > hold.zero()) {
        std::this_thread::sleep_for(hold);
    }
    tell_(thread, "out", "");
    try {
        door.leave();
    } catch (const std::exception& error) {
        tell_(thread, "lost", error.what());
    }
}

} // namespace redislock::test
