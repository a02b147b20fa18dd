#include "redislock/detail/protocol/fault.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace redislock::detail {
namespace {

/// Error replies as servers give them, versions 5 to 8, and what they mean.
TEST(Fault, ErrorRepliesMeanWhatTheyLeaveOpen)
{
    constexpr Fault refused{Failure::refused, Errc::serverRefused};
    constexpr Fault demoted{Failure::demoted, Errc::serverRefused};
    constexpr Fault auth{Failure::fatal, Errc::authFailed};
    constexpr Fault permission{Failure::fatal, Errc::permissionDenied};
    constexpr Fault type{Failure::fatal, Errc::wrongType};
    constexpr Fault unsupported{Failure::fatal, Errc::unsupported};
    constexpr Fault bad{Failure::fatal, Errc::badReply};
    struct Case {
        std::string_view text;
        Fault fault;
    };
    const Case cases[] = {
        {"WRONGTYPE Operation against a key holding the wrong kind of value", type},
        {"WRONGTYPE Operation against a key holding the wrong kind of value script: 5a1b, on @user_script:16.", type},
        {"ERR Error running script (call to f_5a1b): @user_script:16: WRONGTYPE Operation against a key holding the "
         "wrong "
         "kind of value",
         type},
        {"NOAUTH Authentication required.", auth},
        {"WRONGPASS invalid username-password pair or user is disabled.", auth},
        {"DENIED Redis is running in protected mode because protected mode is enabled", auth},
        {"NOPERM this user has no permissions to run the 'evalsha' command", permission},
        {"NOPERM this user has no permissions to access one of the keys used as arguments", permission},
        {"ERR The user executing the script can't run this command or subcommand script: 5a1b, on @user_script:1.",
         permission},
        {"ERR Error running script (call to f_5a1b): @user_script:1: The user executing the script can't run this "
         "command or subcommand",
         permission},
        {"@user_script: 33: The user executing the script can't run this command or subcommand", permission},
        {"ERR ACL failure in script: User x has no permissions to run the 'pexpire' command", permission},
        {"OOM command not allowed when used memory > 'maxmemory'.", refused},
        {"ERR Error running script (call to f_5a1b): @user_script:9: @user_script: 9: -OOM command not allowed when "
         "used "
         "memory > 'maxmemory'.",
         refused},
        {"READONLY You can't write against a read only replica.", demoted},
        {"ERR Error running script (call to f_5a1b): @user_script:9: @user_script: 9: -READONLY You can't write "
         "against a "
         "read only slave.",
         demoted},
        {"NOREPLICAS Not enough good replicas to write.", refused},
        {"MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.",
         refused},
        {"LOADING Redis is loading the dataset in memory", refused},
        {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", refused},
        {"UNKILLABLE Sorry the script already executed write commands against the dataset.", refused},
        {"ERR Error running script (call to f_5a1b): @user_script:1: Script killed by user with SCRIPT KILL...",
         refused},
        {"ERR Error running script: Script killed by user with SCRIPT KILL. script: 5a1b, on @user_script:1.", refused},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", demoted},
        {"TRYAGAIN Multiple keys request during rehashing of slot", refused},
        {"CLUSTERDOWN The cluster is down", refused},
        {"ERR max number of clients reached", refused},
        {"ERR max number of clients + cluster connections reached", refused},
        {"MOVED 866 127.0.0.1:7001", unsupported},
        {"ASK 866 127.0.0.1:7001", unsupported},
        {"CROSSSLOT Keys in request don't hash to the same slot", unsupported},
        {"ERR unknown command 'EVALSHA', with args beginning with: '5a1b' '1' 'stock:42' ", unsupported},
        {"ERR unknown command `EVALSHA`, with args beginning with: `5a1b`, `1`, `stock:42`, ", unsupported},
        {"NOSCRIPT No matching script. Please use EVAL.", bad},
        {"ERR redislock: bad arguments to lock", bad},
        {"ERR wrong number of arguments for 'evalsha' command", bad},
        {"ERR", bad},
        {"", bad},
        {" ", bad},
        {"ERRATIC OOM", bad},
        {"oom lower case is not a word of Redis", bad},
        {"BUSYGROUP Consumer Group name already exists", bad},
    };
    for (const Case& c : cases) {
        const Fault fault = classify(c.text);
        EXPECT_EQ(fault.failure, c.fault.failure) << c.text;
        EXPECT_EQ(fault.error, c.fault.error) << c.text;
    }
}

TEST(Fault, WordsAmongTheArgumentsThatAnErrorRepeatsAreNotErrors)
{
    for (const std::string_view text : {
             "ERR unknown command 'EVALSHA', with args beginning with: '5a1b' '1' 'ROOM:7' ",
             "ERR unknown command `EVALSHA`, with args beginning with: `5a1b`, `1`, `TASK`, ",
             "ERR unknown command 'EVALSHA', with args beginning with: '5a1b' '1' 'READONLY' ",
             "ERR unknown command 'EVALSHA', with args beginning with: '5a1b' '1' 'WRONGTYPE' ",
         }) {
        EXPECT_EQ(classify(text), (Fault{Failure::fatal, Errc::unsupported})) << text;
    }
}

TEST(Fault, WithoutMoreItMeansThatNothingWasSent)
{
    EXPECT_EQ(Fault{}, (Fault{Failure::notConnected, Errc::unreachable}));
}

} // namespace
} // namespace redislock::detail
