// A store that refuses older tokens: a writer that goes on after its lock was lost does no harm.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

namespace {

bool refuseTheOlder(const std::string& url)
{
    const redislock::Client slow(url);
    const redislock::Client quick(url); // stands for another process

    slow.connect();            // reports a wrong address here, not after the first wait
    redislock::TokenGate gate; // for a database: UPDATE … SET value = ?, token = ? WHERE id = ? AND token <= ?
    std::string value;

    const auto first = slow.getFencedLock("example:ledger").lockAndGetToken(100ms);
    // here the slow client is paused for longer than its lease: swap, a debugger, a virtual machine that is moved; when
    // the lease is over, the other gets the lock
    redislock::LockGuard held(quick.getFencedLock("example:ledger"), redislock::Lease(10s));
    const bool newer = gate.admit(*held.token(), [&] { value = "of the quick one"; });
    const bool older = gate.admit(first, [&] { value = "of the slow one"; }); // without a look at its lock

    std::cout << "token " << static_cast<std::uint64_t>(*held.token()) << (newer ? " was written" : " was refused")
              << ", then " << static_cast<std::uint64_t>(first) << (older ? " was written" : " was refused")
              << "; the store has the value " << value << '\n';
    held.release();
    // The last token stays in Redis, or tokens would not grow. Nobody needs this token any more. It is a number, as a
    // semaphore is, and is deleted like a semaphore.
    quick.getSemaphore("redisson_lock_token:{example:ledger}").forceDelete();
    return newer && !older;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv,
                        "Lets a slow writer lose its lock to a quick one, and shows that the store refuses what the "
                        "slow one writes after that.",
                        refuseTheOlder);
}
