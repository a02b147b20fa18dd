// Threads that are cancelled with pthread_cancel(): in no call of the library, but behind it.
#include "behaviour/lock_test.hpp"
#include "redislock/redislock.hpp"

#include <boost/asio/use_future.hpp>

#include <pthread.h>

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

namespace redislock::test {
namespace {

/// A thread that may be cancelled.
class CancellableThread {
public:
    explicit CancellableThread(std::function<void()> what) : what_(std::move(what))
    {
        ::pthread_create(
            &thread_, nullptr,
            [](void* self) -> void* {
                static_cast<CancellableThread*>(self)->what_();
                return nullptr;
            },
            this);
    }
    CancellableThread(const CancellableThread&) = delete;
    CancellableThread& operator=(const CancellableThread&) = delete;
    ~CancellableThread() { (void)join(); }

    void cancel() { ::pthread_cancel(thread_); }
    /// @return whether the thread was cancelled.
    bool join()
    {
        if (!std::exchange(joined_, true)) {
            ::pthread_join(thread_, &result_);
        }
        return result_ == PTHREAD_CANCELED;
    }

private:
    std::function<void()> what_;
    pthread_t thread_{};
    void* result_ = nullptr;
    bool joined_ = false;
};

class CancelledThread : public LockTest {
protected:
    const Client client{config()};
    const std::string name = uniqueName();
    const RedisLock lock = client.getLock(name);
};

TEST_F(CancelledThread, ThatWaitsGetsTheLockAndEndsBehindTheCall)
{
    std::optional<LockGuard> held(lock);
    std::atomic<bool> granted{false};
    CancellableThread waiter([&] {
        const LockGuard own(lock);
        granted = static_cast<bool>(own);
        ::pthread_testcancel();
    });
    ASSERT_TRUE(eventually([&] { return client.getLock(name).isLocked(); }));
    waiter.cancel();
    held.reset();
    EXPECT_TRUE(waiter.join());
    EXPECT_TRUE(granted);
    EXPECT_TRUE(eventually([&] { return !raw.exists(name); })) << "its guard ended the hold";
}

TEST_F(CancelledThread, IsEndedByNoCallAndNoDestructor)
{
    const auto calls = std::vector<std::pair<const char*, std::function<void()>>>{
        {"a client's life",
         [this] {
             Client own(config());
             own.connect();
             (void)own.getLock(name).tryLock(1s, 1s);
         }},
        {"lock, unlock",
         [this] {
             lock.lock();
             (void)lock.unlock();
         }},
        {"a guard", [this] { const LockGuard held(lock); }},
        {"questions",
         [this] {
             (void)lock.isLocked();
             (void)lock.explain();
             (void)lock.forceUnlock();
         }},
        {"asynchronous calls",
         [this] {
             lock.asyncIsLocked([](boost::system::error_code, bool) {});
             lock.asyncLock([](boost::system::error_code, LockGuard) {});
         }},
        {"a group",
         [this] {
             GroupGuard held{MultiLock({lock})};
             (void)held.release();
         }},
        {"a semaphore",
         [this] {
             const auto permits = client.getSemaphore(name + ":permits");
             (void)permits.trySetPermits(1);
             permits.acquire();
             permits.release();
             (void)permits.forceDelete();
         }},
        {"a monitor", [] { (void)LockMonitor(config()).list(); }},
    };
    for (const auto& [what, call] : calls) {
        std::atomic<bool> done{false};
        CancellableThread thread([&done, &call = call] {
            ::pthread_cancel(::pthread_self()); // from here on, any point of cancellation would end the thread
            call();
            done = true;
            ::pthread_testcancel();
        });
        EXPECT_TRUE(thread.join()) << what;
        EXPECT_TRUE(done) << what << ": ended inside";
        EXPECT_TRUE(eventually([&] { return !raw.exists(name); })) << what;
    }
}

} // namespace
} // namespace redislock::test
