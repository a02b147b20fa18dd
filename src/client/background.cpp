#include "client/background.hpp"

#include "link/request/patience.hpp"
#include "values/server_text.hpp"
#include "values/system/process.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <system_error>
#include <utility>

namespace redislock::detail {

Background::Background(const Config& config, const std::string& connectionName, const Node::Listener& listener)
    : lastErrors(serverText(config), config.password), route(io, config, connectionName, lastErrors, listener)
{
}

Background::~Background()
{
    if (thread_.joinable()) {
        thread_.detach(); // the thread has ended, or this is its end
    }
}

std::optional<Reason> Background::start(const std::shared_ptr<void>& owner)
{
    if (started_.load(std::memory_order_acquire)) {
        return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    if (started_.load(std::memory_order_relaxed) || isEnding_) {
        return std::nullopt;
    }
    const BlockedSignals none; // the thread inherits this
    try {
        thread_ = std::thread([this, owner] { run(); });
    } catch (const std::system_error&) {
        return Cause::noThread;
    }
    isRunning_ = true;
    started_.store(true, std::memory_order_release);
    return std::nullopt;
}

bool Background::isOwnThread() const noexcept
{
    return ownThread_.load(std::memory_order_relaxed) == currentThread();
}

void Background::run() noexcept
{
    ownThread_.store(currentThread(), std::memory_order_relaxed);
    for (bool failed = false;;) {
        try {
            if (failed) {
                recover();
                failed = false;
            }
            io.run();
            break;
        } catch (...) { // out of memory, or of what a timer needs; nothing of a user's throws here
            failed = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    const std::lock_guard lock(mutex_);
    isRunning_ = false;
    ended_.notify_all();
}

/// After an exception on the thread: the function that threw may not have set its next wait.
void Background::recover()
{
    renewalTimer.wait();
    route.recover();
    recovered();
}

void Background::post(std::function<void()> what)
{
    const Uncancelled held;
    // the caller, who may have the mutex, keeps nothing whose destructor has much to do
    const auto shared = patiently([&] { return std::make_shared<std::function<void()>>(std::move(what)); });
    patiently([&] { boost::asio::post(io, [shared] { std::exchange(*shared, nullptr)(); }); });
}

std::shared_ptr<Background::Later> Background::later(TimePoint when, std::function<void()> what)
{
    auto later = patiently([&] { return std::make_shared<Later>(Later{boost::asio::steady_timer(io), {}}); });
    later->what = std::move(what);
    auto set = [this, later, when] {
        if (work_.owns_work()) {
            patiently([&] { later_.insert(later); });
            later->timer.expires_after(when - BootClock::now());
        } // else the client has ended
        patiently([&] {
            later->timer.async_wait([this, later](boost::system::error_code) {
                later_.erase(later);
                if (const auto due = std::exchange(later->what, nullptr)) {
                    due();
                }
            });
        });
    };
    post(patiently([&] { return std::function<void()>(std::move(set)); }));
    return later;
}

/// Ends connections and timers, and does now what was to be done later. On the thread.
void Background::close()
{
    renewalTimer.close();
    route.close();
    work_.reset();
    for (const auto& each : later_) {
        each->timer.cancel();
    }
}

void Background::end(std::function<void()> last) noexcept
{
    last_ = std::move(last);
    try {
        post([this] {
            last_();
            close();
        });
    } catch (...) { // out of memory, and not for a moment only: the thread ends without ending what is under way
        io.stop();
    }
    const std::lock_guard lock(mutex_);
    isEnding_ = true;
}

void Background::join(TimePoint until) noexcept
{
    std::unique_lock lock(mutex_);
    if (!thread_.joinable()) {
        return;
    }
    if (!isEnding_ || isOwnThread()) {
        if (isEnding_) { // else an asynchronous end is under way
            thread_.detach();
        }
        lock.unlock();
        return keepLoaded();
    }
    const TimePoint latest = std::max(until, BootClock::now() + std::chrono::milliseconds(100));
    while (isRunning_ && BootClock::now() < latest) {
        ended_.wait_for(lock, napUntil(latest));
    }
    auto thread = std::move(thread_);
    const bool hasEnded = !isRunning_;
    lock.unlock();
    if (!hasEnded) {
        keepLoaded();
    }
    if (thread.joinable()) { // else another caller of join() was first
        hasEnded ? thread.join() : thread.detach();
    }
}

} // namespace redislock::detail
