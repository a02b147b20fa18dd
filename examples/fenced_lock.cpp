// A store that refuses older tokens: a writer that goes on after it lost its lock does no harm.
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
    // the lease is over, the quick client gets the lock
    redislock::LockGuard held(quick.getFencedLock("example:ledger"), redislock::Lease(10s));
    const bool newer = gate.admit(*held.token(), [&] { value = "from the quick writer"; });
    const bool older = gate.admit(first, [&] { value = "from the slow writer"; }); // does not check its lock

    std::cout << "token " << static_cast<std::uint64_t>(*held.token()) << (newer ? " was accepted" : " was refused")
              << ", then token " << static_cast<std::uint64_t>(first) << (older ? " was accepted" : " was refused")
              << "; the value in the store is " << value << '\n';
    held.release();
    // The last token stays in Redis, so that later tokens are greater. This example no longer needs it. It is a number,
    // as a semaphore is, and can be deleted like one.
    quick.getSemaphore("redisson_lock_token:{example:ledger}").forceDelete();
    return newer && !older;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv,
                        "Lets a slow writer lose its lock to a quick one, and shows that the store then refuses the "
                        "slow writer.",
                        refuseTheOlder);
}
