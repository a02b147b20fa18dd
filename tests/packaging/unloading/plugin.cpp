// A plugin that contains the library.
#include <redislock/redislock.hpp>

#include <unistd.h>

#include <chrono>
#include <exception>
#include <memory>
#include <semaphore>
#include <string_view>
#include <utility>

namespace {

/// Keeps the client's thread in its first event until something can be read.
class Keeper final : public redislock::Observer {
public:
    explicit Keeper(int until) : until_(until) {}

    void acquired(const redislock::LockEvent& /*event*/, std::chrono::nanoseconds /*waited*/,
                  std::uint32_t /*attempts*/) noexcept override
    {
        reached.release();
        char byte = 0;
        (void)!::read(until_, &byte, 1);
    }

    std::binary_semaphore reached{0};

private:
    int until_;
};

} // namespace

/// Takes a lock, and gives it back. @return whether it was held
extern "C" bool useLibrary(const char* url)
try {
    redislock::Client client{std::string_view(url)};
    const auto lock = client.getLock("plugin");
    redislock::LockGuard held(lock);
    return static_cast<bool>(held) && held.release() == redislock::Unlocked::released;
} catch (const std::exception&) {
    return false;
}

/// Returns while the thread of a client that has ended is still in its observer, until @p until can be read.
extern "C" bool leaveThread(const char* url, int until)
try {
    auto config = redislock::Config::fromUrl(url);
    const auto keeper = std::make_shared<Keeper>(until);
    config.observer = keeper;
    redislock::Client client(std::move(config));
    const auto lock = client.getLock("plugin");
    lock.lock();
    keeper->reached.acquire();
    lock.unlock();
    client.shutdown(std::chrono::milliseconds(0));
    return true;
} catch (const std::exception&) {
    return false;
}
