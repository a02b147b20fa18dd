// Acquiring, on the calling thread.
#include "logic/flow/thread_acquire.hpp"
#include "runtime/base/process.hpp"
#include "runtime/engine/drive.hpp"
#include "runtime/engine/engine.hpp"

namespace redislock::detail {

std::error_code Engine::acquire(NamedLock& named, const AcquireOrder& order, Acquired& acquired)
{
    if (!order.lease.isValid()) {
        return Errc::invalidArgument;
    }
    if (const auto refused = refusal()) {
        return *refused;
    }
    start();
    std::error_code error;
    ThreadAcquire::Rest rest; // let go of after the mutex
    {
        Lock lock(mutex_);
        ThreadAcquire acquire(core_, named, order, currentThread());
        drive(lock, acquire, &order);
        error = acquire.conclude(acquired, rest);
    }
    if (acquired.hold == nullptr) {
        commands_->flush(); // what it gives back
    }
    return error;
}

} // namespace redislock::detail
