// Seats that are reserved for a while: reserved in one process, bought in another by the permit's id, and free again
// automatically if nobody comes back.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <chrono>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

namespace {

bool reserveASeat(const std::string& url)
{
    const redislock::Client shop(url);
    const redislock::Client checkout(url); // stands for another process

    shop.connect(); // reports a wrong address here, not after the first wait
    const auto seats = shop.getPermitExpirableSemaphore("example:seats");
    seats.trySetPermits(1);

    redislock::Permit seat = seats.tryAcquire(100ms, 10s); // empty: sold out
    if (!seat) {
        std::cout << "the seat is taken\n";
        return false;
    }
    std::cout << "seat " << seat.id() << " is reserved for ten seconds\n";

    const std::string id = seat.id(); // goes to the browser, and comes back elsewhere
    const auto paying = checkout.getPermitExpirableSemaphore("example:seats");
    const bool inTime = paying.updateLeaseTime(id, 1s); // from now on, the time to pay
    std::cout << (inTime ? "the customer pays" : "too late") << '\n';

    // ... and does not come back. The next customer waits until the lease is over.
    redislock::Permit next = paying.tryAcquire(10s, 30s);
    std::cout << (next ? "the seat is free again, and goes to the next customer" : "the seat is still taken") << '\n';
    const bool expired = seat.release() == redislock::Unlocked::alreadyLost; // takes nothing from the next customer
    const bool sold = static_cast<bool>(next);
    if (sold) {
        next.release();
    }
    seats.forceDelete();
    return inTime && sold && expired;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv,
                        "Reserves the only seat for a customer who does not come back, and gives it to the next when "
                        "the reservation is over.",
                        reserveASeat);
}
