#include "link/connect/last_errors.hpp"

#include "link/request/calls.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::detail::trouble {
namespace {

Reply refusal(std::string line)
{
    return {.kind = Reply::Kind::error, .integer = 0, .text = std::move(line), .elements = {}};
}

TEST(LastErrors, KeepsTheLastWordsOfEachError)
{
    LastErrors lastErrors("redis:6379", "");
    EXPECT_EQ(lastErrors.about(Errc::unreachable).text, "");
    lastErrors.note(Cause::hostNotFound, "Host not found");
    lastErrors.note(Cause::connectionRefused, "first");
    lastErrors.note(Cause::connectionRefused, "Connection refused");
    EXPECT_EQ(lastErrors.about(Cause::connectionRefused).text, "Connection refused");
    EXPECT_EQ(lastErrors.about(Cause::hostNotFound).text, "Host not found");
    EXPECT_EQ(lastErrors.about(Cause::silent).text, "");
    EXPECT_EQ(
        lastErrors.sentence(Cause::connectionRefused),
        "redis:6379: nothing listens at the address: Connection refused; start the server, or correct the address");
    EXPECT_EQ(lastErrors.sentence(Cause::silent), "redis:6379: " + make_error_code(Cause::silent).message());
}

TEST(LastErrors, QuotesTheServerWithoutWhatCannotBePrintedAndWithoutTheScript)
{
    LastErrors lastErrors("redis:6379", "");
    lastErrors.noteReply(refusal("OOM not allowed\x1b[2J script: 5a1b, on @user_script:9."));
    EXPECT_EQ(lastErrors.about(Cause::outOfMemory).text, "\"OOM not allowed\\x1b[2J\"");
    lastErrors.noteReply(refusal("LOADING " + std::string(1000, 'x')));
    EXPECT_LT(lastErrors.about(Cause::loading).text.size(), 210U);
    lastErrors.noteReply({.kind = Reply::Kind::text, .integer = 0, .text = "READONLY", .elements = {}});
    EXPECT_EQ(lastErrors.about(Cause::readOnly).text, "") << "no error";
}

TEST(LastErrors, KeepsNothingThatRepeatsThePasswordOrAPieceOfIt)
{
    const std::string password = "hunter2 is secret";
    for (const std::string_view line : {
             "ERR unknown command `AUTH`, with args beginning with: `hunter2 is secret`, ",
             "ERR unknown command 'AUTH', with args beginning with: 'hunter2 is sec",
             "ERR secret",
         }) {
        LastErrors lastErrors("redis:6379", password);
        lastErrors.noteReply(Errc::authFailed, "WRONGPASS no");
        lastErrors.noteReply(Errc::authFailed, line);
        EXPECT_EQ(lastErrors.about(Errc::authFailed).text, "") << line;
    }
    LastErrors brief("redis:6379", "x");
    brief.noteReply(Errc::authFailed, "ERR x");
    EXPECT_EQ(brief.about(Errc::authFailed).text, "");
    brief.noteReply(Errc::authFailed, "ERR y");
    EXPECT_EQ(brief.about(Errc::authFailed).text, "\"ERR y\"");
}

TEST(LastErrors, HideEachSecretFromTheMomentThatItIsKnown)
{
    LastErrors lastErrors("redis:6379", "");
    lastErrors.note(Cause::credentialsMissing, "token first-token is over");
    EXPECT_NE(lastErrors.about(Cause::credentialsMissing).text, "");
    lastErrors.hide("first-token");
    EXPECT_EQ(lastErrors.about(Cause::credentialsMissing).text, "") << "what was kept before";
    for (int i = 0; i < 7; ++i) {
        lastErrors.hide(std::string(8, static_cast<char>('a' + i)));
        lastErrors.hide("first-token"); // is the latest again
        lastErrors.hide(std::string(8, static_cast<char>('A' + i)));
    }
    lastErrors.noteReply(Errc::authFailed, "ERR first");
    lastErrors.note(Errc::unreachable, "GGGG");
    EXPECT_EQ(lastErrors.about(Errc::authFailed).text, "");
    EXPECT_EQ(lastErrors.about(Errc::unreachable).text, "");
    lastErrors.note(Errc::unreachable, "aaaa");
    EXPECT_EQ(lastErrors.about(Errc::unreachable).text, "aaaa") << "a secret of long ago";
}

/// In the words of Redis 6.2, 7.0 and 8, and of Valkey.
TEST(LastErrors, NameTheRuleThatWouldAllowADeniedRequest)
{
    const auto& script = scripts::redisLockLock;
    const std::string text = script.text();
    const auto at = text.find("call('PTTL'");
    ASSERT_NE(at, std::string::npos);
    const auto number = std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
    const ScriptCall call(script, {"stock:42"}, {});
    const std::pair<std::string, std::string> cases[] = {
        {"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand", "+evalsha"},
        {"NOPERM this user has no permissions to run the 'evalsha' command", "+evalsha"},
        {"NOPERM User orders has no permissions to run the 'evalsha' command", "+evalsha"},
        {"ERR Error running script (call to f_ab): @user_script:" + number + ": @user_script: " + number +
             ": The user executing the script can't run this command or subcommand",
         "+pttl"},
        {"ERR The user executing the script can't run this command or subcommand script: ab, on @user_script:" +
             number + ".",
         "+pttl"},
        {"ERR ACL failure in script: User orders has no permissions to run the 'pttl' command script: ab, on "
         "@user_script:" +
             number + ".",
         "+pttl"},
        {"NOPERM this user has no permissions to access one of the keys used as arguments", "~stock:42"},
        {"NOPERM No permissions to access a key", "~stock:42"},
    };
    for (const auto& [line, rule] : cases) {
        LastErrors lastErrors("redis:6379", "");
        lastErrors.noteReply(refusal(line), &call);
        const bool isKey = rule.front() == '~';
        const auto words = lastErrors.about(isKey ? Cause::keyDenied : Cause::commandDenied).text;
        EXPECT_TRUE(words.ends_with("\" to EVALSHA with the key \"stock:42\"; grant " + rule +
                                    "; redislock doctor \"stock:42\" lists all missing rights"))
            << words;
    }
    LastErrors handshake("redis:6379", "");
    handshake.noteReply(refusal("NOPERM this user has no permissions to run the 'select' command"));
    EXPECT_TRUE(handshake.about(Cause::commandDenied)
                    .text.ends_with("\"; grant +select; redislock doctor NAME lists all missing rights"));
}

TEST(LastErrors, ShowAReplyThatDoesNotFitUnlessItRepeatsASecret)
{
    LastErrors lastErrors("redis:6379", "hunter2");
    Reply many{.kind = Reply::Kind::array, .integer = 0, .text = "", .elements = {}};
    many.elements.resize(20);
    lastErrors.noteUnfit(many);
    EXPECT_EQ(lastErrors.about(Errc::badReply).text, "[nil, nil, nil, nil, nil, nil, nil, nil, ...]");
    many.elements[0] = {.kind = Reply::Kind::text, .integer = 0, .text = "it is hunter2", .elements = {}};
    lastErrors.noteUnfit(many);
    EXPECT_EQ(lastErrors.about(Errc::badReply).text, "");
    EXPECT_STREQ(
        LockError(Errc::badReply, "lock", "-7").what(),
        "lock: the reply does not fit the request: -7; look for a proxy that changes replies, or a program that "
        "writes the same keys");
}

TEST(LastErrors, AreOfTheServerOrOfTheCall)
{
    for (const Errc e : {Errc::unreachable, Errc::authFailed, Errc::serverRefused, Errc::badReply}) {
        EXPECT_TRUE(LastErrors::isOfServer(e));
    }
    EXPECT_TRUE(LastErrors::isOfServer(Cause::silent));
    for (const Errc e : {Errc::invalidArgument, Errc::notHeld, Errc::shutdown, Errc::forked, Errc::wouldDeadlock}) {
        EXPECT_FALSE(LastErrors::isOfServer(e));
    }
}

} // namespace
} // namespace redislock::detail::trouble
