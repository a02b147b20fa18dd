// The message from the release of a fair lock to the client of the next waiter.
#include "core/share/handoff.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

TEST(GrantMessage, NamesTheHoldItsRequestTheTimeAndTheLock)
{
    const auto message = GrantMessage::from("17 3 4321 stock:42"sv);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->holder, HolderId{17});
    EXPECT_EQ(message->request, 3U);
    EXPECT_EQ(message->lasts, 4321ms);
    EXPECT_EQ(message->name, "stock:42");
}

TEST(GrantMessage, TakesANameOfAnyBytes)
{
    for (const auto name : {"two words"sv, " "sv, "nul\0byte"sv, "1 2 3"sv}) {
        const std::string text = "1 1 0 " + std::string(name); // the message's name points into this text
        const auto message = GrantMessage::from(text);
        ASSERT_TRUE(message);
        EXPECT_EQ(message->name, name);
        EXPECT_EQ(message->lasts, 0ms);
    }
}

TEST(GrantMessage, OfAnyOtherFormIsNone)
{
    for (const auto text :
         {""sv, "0"sv, "17"sv, "17 3"sv, "17 3 4321"sv, " 17 3 4321 x"sv, "17  3 4321 x"sv, "-1 3 4321 x"sv,
          "17 -3 4321 x"sv, "17 3 -1 x"sv, "+17 3 4321 x"sv, "17 4294967296 4321 x"sv, "17 3 2592000001 x"sv,
          "99999999999999999999 3 4321 x"sv, "17 3 4321.5 x"sv, "0x11 3 4321 x"sv, "x 3 4321 x"sv}) {
        EXPECT_FALSE(GrantMessage::from(text)) << text;
    }
}

} // namespace
} // namespace redislock::detail
