#include "link/connect/troubles.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace redislock::detail::trouble {
namespace {

Reply refusal(std::string line)
{
    return {.kind = Reply::Kind::error, .integer = 0, .text = std::move(line), .elements = {}};
}

TEST(Troubles, KeepsTheLastWordsOfEachError)
{
    Troubles troubles("redis:6379", "");
    EXPECT_EQ(troubles.about(Errc::unreachable).text, "");
    troubles.note(Cause::hostNotFound, "Host not found");
    troubles.note(Cause::connectionRefused, "first");
    troubles.note(Cause::connectionRefused, "Connection refused");
    EXPECT_EQ(troubles.about(Cause::connectionRefused).text, "Connection refused");
    EXPECT_EQ(troubles.about(Cause::hostNotFound).text, "Host not found");
    EXPECT_EQ(troubles.about(Cause::silent).text, "");
    EXPECT_EQ(troubles.sentence(Cause::connectionRefused),
              "redis:6379: nothing listens at the address: Connection refused");
    EXPECT_EQ(troubles.sentence(Cause::silent), "redis:6379: the connection was made, but no answer came in time");
}

TEST(Troubles, QuotesTheServerWithoutWhatCannotBePrintedAndWithoutTheScript)
{
    Troubles troubles("redis:6379", "");
    troubles.noteReply(refusal("OOM not allowed\x1b[2J script: 5a1b, on @user_script:9."));
    EXPECT_EQ(troubles.about(Cause::outOfMemory).text, "\"OOM not allowed\\x1b[2J\"");
    troubles.noteReply(refusal("LOADING " + std::string(1000, 'x')));
    EXPECT_LT(troubles.about(Cause::loading).text.size(), 210U);
    troubles.noteReply({.kind = Reply::Kind::text, .integer = 0, .text = "READONLY", .elements = {}});
    EXPECT_EQ(troubles.about(Cause::readOnly).text, "") << "no error";
}

TEST(Troubles, KeepsNothingThatRepeatsThePasswordOrAPieceOfIt)
{
    const std::string password = "hunter2 is secret";
    for (const std::string_view line : {
             "ERR unknown command `AUTH`, with args beginning with: `hunter2 is secret`, ",
             "ERR unknown command 'AUTH', with args beginning with: 'hunter2 is sec",
             "ERR secret",
         }) {
        Troubles troubles("redis:6379", password);
        troubles.noteReply(Errc::authFailed, "WRONGPASS no");
        troubles.noteReply(Errc::authFailed, line);
        EXPECT_EQ(troubles.about(Errc::authFailed).text, "") << line;
    }
    Troubles brief("redis:6379", "x");
    brief.noteReply(Errc::authFailed, "ERR x");
    EXPECT_EQ(brief.about(Errc::authFailed).text, "");
    brief.noteReply(Errc::authFailed, "ERR y");
    EXPECT_EQ(brief.about(Errc::authFailed).text, "\"ERR y\"");
}

TEST(Troubles, AreOfTheServerOrOfTheCall)
{
    for (const Errc e : {Errc::unreachable, Errc::authFailed, Errc::serverRefused, Errc::badReply}) {
        EXPECT_TRUE(Troubles::isOfServer(e));
    }
    EXPECT_TRUE(Troubles::isOfServer(Cause::silent));
    for (const Errc e : {Errc::invalidArgument, Errc::notHeld, Errc::shutdown, Errc::forked, Errc::wouldDeadlock}) {
        EXPECT_FALSE(Troubles::isOfServer(e));
    }
}

} // namespace
} // namespace redislock::detail::trouble
