// A program of a user of the component.
#include <redislock/prometheus_observer.hpp>
#include <redislock/redislock.hpp>
#include <redislock/testing/redis_server.hpp>

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

int main()
{
    const redislock::testing::RedisServer server;
    const auto registry = std::make_shared<prometheus::Registry>();
    auto config = redislock::Config::fromUrl(server.url());
    config.observer = std::make_shared<redislock::PrometheusObserver>(registry);
    redislock::Client client(config);
    client.getLock("demos").lock();
    const auto isCounted = [&registry] { // the client's thread counts it soon
        const auto text = prometheus::TextSerializer().Serialize(registry->Collect());
        return text.find("redislock_acquired_total{kind=\"redisLock\"} 1\n") != std::string::npos;
    };
    for (int i = 0; i < 1000 && !isCounted(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return isCounted() ? 0 : 1;
}
