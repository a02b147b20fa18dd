#include "values/connection_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {
namespace {

constexpr std::string_view someId = "0a1f96fc-15c1-4297-a056-e1c973a409fe";

TEST(ConnectionName, NamesClientHostAndProcess)
{
    EXPECT_EQ(connectionName("", someId, "shop-1.internal", 4711),
              "redislock:0a1f96fc-15c1-4297-a056-e1c973a409fe:shop-1.internal:4711");
    EXPECT_EQ(connectionName("orders:eu", someId, "h", 1), "orders:eu:0a1f96fc-15c1-4297-a056-e1c973a409fe:h:1");
}

TEST(ConnectionName, IsReadAgain)
{
    for (const std::string_view label : {"redislock", "orders", "orders:eu", "::", "a:1"}) {
        for (const std::string_view host : {"h", "shop-1.internal", ""}) {
            const ConnectionIdentity identity{std::string(label), std::string(someId), std::string(host), 4711};
            EXPECT_EQ(identityOf(connectionName(label, someId, host, 4711)), identity) << label << ' ' << host;
        }
    }
}

TEST(ConnectionName, ShortensTheHostFirst)
{
    const std::string label(64, 'l');
    const std::string host(64, 'h');
    const auto name = connectionName(label, someId, host, 4194304);
    EXPECT_EQ(name.size(), maxConnectionName);
    const auto identity = identityOf(name);
    ASSERT_TRUE(identity);
    EXPECT_EQ(identity->label, label);
    EXPECT_EQ(identity->clientId, someId);
    EXPECT_EQ(identity->host, host.substr(0, identity->host.size()));
    EXPECT_EQ(identity->host.size(), 18U);
    EXPECT_EQ(identity->process, 4194304U);
    EXPECT_LE(connectionName(label, someId, host, UINT64_MAX).size(), maxConnectionName);
}

TEST(ConnectionName, HostsOfAnyBytesGiveNamesThatRedisTakes)
{
    EXPECT_EQ(connectionName("", someId, "a b:c\n\xc3\xa4", 1),
              "redislock:0a1f96fc-15c1-4297-a056-e1c973a409fe:a_b_c___:1");
}

TEST(ConnectionName, NamesOfOthersTellNothing)
{
    const std::string id(someId);
    const std::vector<std::string> names{"",
                                         "orders",
                                         ":",
                                         "a:b:c:1",
                                         "x:" + id,
                                         "x:" + id + ":h",
                                         "x:" + id + ":h:",
                                         "x:" + id + ":h:1x",
                                         "x:" + id + ":h:-1",
                                         id + ":h:1",
                                         "x" + id + ":h:1",
                                         "x:" + id + "0:h:1",
                                         "x:0a1f96fc-15c1-4297-a056-e1c973a409fg:h:1",
                                         "x:0a1f96fcx15c1-4297-a056-e1c973a409fe:h:1",
                                         "x:" + id + ":h:99999999999999999999"};
    for (const auto& name : names) {
        EXPECT_FALSE(identityOf(name)) << name;
    }
}

} // namespace
} // namespace redislock::detail
