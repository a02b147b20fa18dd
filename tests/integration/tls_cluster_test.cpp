// A cluster whose nodes speak TLS, with clients and among each other.
#include "integration/cluster_test.hpp"
#include "support/certificates.hpp"

#include <gmock/gmock.h>

#include <string>

#if REDISLOCK_WITH_TLS
namespace redislock::test {
namespace {

using ::testing::HasSubstr;

TEST(InClusterOverTls, EveryMasterGrantsAndTells)
{
    const Cluster secured(3, 0,
                          {.arguments = {"--tls-cluster", "yes", "--tls-replication", "yes"}, .tls = serverTls()});
    Config config = Config::fromUrl("rediss-cluster://127.0.0.1:" + std::to_string(secured.node().port()));
    config.tls->caFile = secured.node().tls()->caFile;
    config.pollInterval = 60s;
    const Client one(config);
    const Client two(config);
    for (int i = 0; i < 12; ++i) {
        const auto name = "tls" + std::to_string(i);
        EXPECT_LT(handOver(one.getLock(name), two.getLock(name)), aMoment);
    }
    config.tls->caFile.clear();
    EXPECT_THAT(errorOf([&] { Client(config).connect(); }), HasSubstr("trusted"));
}

} // namespace
} // namespace redislock::test
#endif
