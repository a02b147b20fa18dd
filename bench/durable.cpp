/// @file
/// What it costs that a replica must have a lock.
#include "reference/raw_locks.hpp"
#include "rows.hpp"
#include "uncontended.hpp"

#include <redislock/redislock.hpp>
#include <redislock/testing/redis_server.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace redislock::bench {

namespace {

/// A master and one replica.
class ReplicatedServer {
public:
    ReplicatedServer()
    {
        const auto end = Clock::now() + std::chrono::seconds(30);
        while (raw().command({"WAIT", "1", "1"})->integer < 1) {
            if (Clock::now() > end) {
                throw std::runtime_error("the replica does not follow");
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }

    [[nodiscard]] Config config(const Durability& durability) const
    {
        Config config = Config::fromUrl(master_.url());
        config.durability = durability;
        return config;
    }
    [[nodiscard]] RawConnection raw() const { return {master_.host(), master_.port()}; }

private:
    redislock::testing::RedisServer master_{{.arguments = {"--repl-diskless-sync-delay", "0"}}};
    redislock::testing::RedisServer replica_{
        {.arguments = {"--replicaof", "127.0.0.1", std::to_string(master_.port())}}};
};

/// Lock and WAIT in one packet on one connection, then unlock: what a program can do that has one lock only.
Side replicatedByHand(RawConnection connection)
{
    struct ByHand {
        RawConnection connection;
        std::string lock = connection.load(lockScript);
        std::string unlock = connection.load(unlockScript);
    };
    const std::string name = "bench:hand:00";
    return [name, channel = channelOf(name),
            by = std::make_shared<ByHand>(ByHand{std::move(connection)})](Seconds duration) {
        constexpr std::string_view holder = "6f1c1f7e-30a4-4c29-9d0b-5a3c8e2b7d00:100000";
        return callsPerSecond(1, duration, [&](unsigned) {
            by->connection.append({"EVALSHA", by->lock, "1", name, leaseMs, holder});
            by->connection.append({"WAIT", "1", "1000"});
            expect(by->connection.nextReply()->type == REDIS_REPLY_NIL, "the reply to the reference's lock");
            expect(by->connection.nextReply()->integer == 1, "the reply to the reference's WAIT");
            const auto freed =
                by->connection.command({"EVALSHA", by->unlock, "2", name, channel, "0", leaseMs, holder});
            expect(freed->integer == 1, "the reply to the reference's unlock");
        });
    };
}

/// Keeps the servers for as long as the measurement.
Measure beside(std::shared_ptr<const ReplicatedServer> server, Side ours, Side reference)
{
    return [server = std::move(server), measure = inTurn(std::move(ours), std::move(reference))](
               Seconds duration, First first) { return measure(duration, first); };
}

} // namespace

Measure durableLock(const Target&)
{
    const auto server = std::make_shared<const ReplicatedServer>();
    return beside(server, lockSide(server->config(Durability::replicas(1)), 1), replicatedByHand(server->raw()));
}

Measure durableLocks(const Target&, unsigned threads)
{
    const auto server = std::make_shared<const ReplicatedServer>();
    return beside(server, lockSide(server->config(Durability::replicas(1)), threads),
                  lockSide(server->config(Durability::none()), threads));
}

} // namespace redislock::bench
