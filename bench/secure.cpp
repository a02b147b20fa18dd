/// @file
/// What TLS costs: against OpenSSL by hand, and against the same without TLS on the same server.
#include "process_facts.hpp"
#include "reference/server_facts.hpp"
#include "reference/tls_connection.hpp"
#include "rows.hpp"
#include "statistics.hpp"
#include "support/certificates.hpp"
#include "uncontended.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redislock::bench {

namespace {

/// A server that speaks TLS on one port and plainly on another.
class SecureServer {
public:
    [[nodiscard]] Config secure() const
    {
        Config config = plain();
        config.endpoint.port = server_.port();
        config.tls.emplace().caFile = server_.tls()->caFile;
        return config;
    }
    [[nodiscard]] Config plain() const
    {
        Config config;
        config.endpoint.port = server_.plainPort();
        return config;
    }
    [[nodiscard]] RawConnection raw() const { return {server_.host(), server_.plainPort()}; }
    [[nodiscard]] TlsConnection rawSecure() const { return {server_.host(), server_.port(), server_.tls()->caFile}; }

private:
    static redislock::testing::RedisServerTls onBothPorts()
    {
        auto tls = test::serverTls();
        tls.plainToo = true;
        return tls;
    }

    redislock::testing::RedisServer server_{{.tls = onBothPorts()}};
};

template <class Connection>
Side pairsBy(Connection connection)
{
    const auto lock = std::make_shared<LockOver<Connection>>(std::move(connection), "bench:hand:00",
                                                             "6f1c1f7e-30a4-4c29-9d0b-5a3c8e2b7d00:100000");
    return [lock](Seconds duration) {
        return callsPerSecond(1, duration, [&](unsigned) {
            lock->lock();
            lock->unlock();
        });
    };
}

/// Keeps the server for as long as the measurement.
Measure on(std::shared_ptr<const SecureServer> server, Side ours, Side reference)
{
    return [server = std::move(server), measure = inTurn(std::move(ours), std::move(reference))](
               Seconds duration, First first) { return measure(duration, first); };
}

/// The median time from nothing to the first lock, in ms.
double untilTheFirstLock(const Config& config, Seconds duration)
{
    std::vector<double> samples;
    const auto end = Clock::now() + duration;
    while (samples.empty() || Clock::now() < end) {
        const auto begin = Clock::now();
        const Client client(config);
        const auto lock = client.getLock("bench:first");
        lock.lock();
        samples.push_back(microseconds(Clock::now() - begin) / 1000);
        expect(lock.unlock() == Unlocked::released, "the library's unlock()");
    }
    return median(std::move(samples));
}

/// KiB of a client that is connected, for each of its connections.
double memoryOfAConnection(const Config& config, RawConnection server)
{
    constexpr int clients = 32;
    const auto connected = [&] { return infoNumber(server, "clients", "connected_clients"); };
    const auto others = connected();
    const auto before = heapInUse();
    std::deque<Client> all;
    for (int i = 0; i < clients; ++i) {
        const auto lock = all.emplace_back(config).getLock("bench:memory");
        lock.lock();
        expect(lock.unlock() == Unlocked::released, "the library's unlock()");
    }
    return static_cast<double>(heapInUse() - before) / 1024 / (connected() - others);
}

} // namespace

Measure lockOverTls(const Target&)
{
    const auto server = std::make_shared<const SecureServer>();
    return on(server, lockSide(server->secure(), 1), pairsBy(server->rawSecure()));
}

Measure lockOverTlsAgainstPlain(const Target&, unsigned threads)
{
    const auto server = std::make_shared<const SecureServer>();
    return on(server, lockSide(server->secure(), threads), lockSide(server->plain(), threads));
}

Measure rawLockOverTls(const Target&)
{
    const auto server = std::make_shared<const SecureServer>();
    return on(server, pairsBy(server->rawSecure()), pairsBy(server->raw()));
}

Measure firstLockOverTls(const Target&)
{
    const auto server = std::make_shared<const SecureServer>();
    const auto side = [](const Config& config) {
        return [config](Seconds duration) { return untilTheFirstLock(config, duration); };
    };
    return on(server, side(server->secure()), side(server->plain()));
}

Measure memoryOfTls(const Target&)
{
    return [server = std::make_shared<const SecureServer>()](Seconds, First) {
        (void)untilTheFirstLock(server->secure(), Seconds(0)); // what the process has once
        const auto plain = memoryOfAConnection(server->plain(), server->raw());
        const auto secure = memoryOfAConnection(server->secure(), server->raw());
        return Pair{secure, plain, fmt::format("{:.1f} KiB a connection more than without TLS", secure - plain)};
    };
}

} // namespace redislock::bench
