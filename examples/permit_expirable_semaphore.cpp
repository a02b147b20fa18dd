// Seats that are reserved for a while: reserved in one process, bought in another by the permit's id, and free again by
// themselves when nobody comes back.
#include <redislock/redislock.hpp>

#include <chrono>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

int main(int argc, char** argv)
{
    try {
        const char* url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379";
        redislock::Client shop(url);
        redislock::Client checkout(url); // another process
        const auto seats = shop.getPermitExpirableSemaphore("example:seats");
        seats.trySetPermits(1);

        redislock::Permit seat = seats.tryAcquire(100ms, 10s); // empty: sold out
        std::cout << "seat " << seat.id() << " is reserved for ten seconds\n";

        const std::string id = seat.id(); // goes to the browser, and comes back elsewhere
        const auto paying = checkout.getPermitExpirableSemaphore("example:seats");
        const bool inTime = paying.updateLeaseTime(id, 1s); // from now on, to pay
        std::cout << (inTime ? "the customer pays" : "too late") << '\n';

        // ... and does not come back. The next one waits until the lease is over.
        redislock::Permit next = paying.tryAcquire(10s, 30s);
        std::cout << (next ? "the seat is free again, and taken by the next" : "nobody gave it back") << '\n';
        const bool expired = seat.release() == redislock::Unlocked::alreadyLost; // and takes nothing from the next
        next.release();
        seats.forceDelete();
        return inTime && expired ? 0 : 1;
    } catch (const redislock::LockError& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
