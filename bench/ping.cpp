#include "ping.hpp"

#include "reference/raw_connection.hpp"
#include "statistics.hpp"

#include <memory>
#include <thread>
#include <vector>

namespace redislock::bench {

Side pingSide(const Target& target, std::chrono::microseconds pause)
{
    return [pause, connection = std::make_shared<RawConnection>(target.host, target.port)](Seconds duration) {
        std::vector<double> samples;
        const auto end = Clock::now() + duration;
        do {
            std::this_thread::sleep_for(pause);
            const auto begin = Clock::now();
            const auto reply = connection->command({"PING"});
            samples.push_back(microseconds(Clock::now() - begin));
            expect(reply->type == REDIS_REPLY_STATUS, "the reply to PING");
        } while (Clock::now() < end);
        return median(std::move(samples));
    };
}

} // namespace redislock::bench
