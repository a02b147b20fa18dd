#include "wire/fault.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace redislock::detail {
namespace {

/// Error replies as servers give them, versions 5 to 8, and what they mean.
TEST(Fault, ErrorRepliesMeanWhatTheyLeaveOpen)
{
    constexpr auto refused = [](Cause cause) { return Fault{Failure::refused, cause}; };
    constexpr auto demoted = [](Cause cause) { return Fault{Failure::demoted, cause}; };
    constexpr auto fatal = [](Cause cause) { return Fault{Failure::fatal, cause}; };
    constexpr Fault type{Failure::fatal, Errc::wrongType};
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
        {"NOAUTH Authentication required.", fatal(Cause::passwordWanted)},
        {"WRONGPASS invalid username-password pair or user is disabled.", fatal(Cause::wrongPassword)},
        {"DENIED Redis is running in protected mode because protected mode is enabled", fatal(Cause::protectedMode)},
        {"NOPERM this user has no permissions to run the 'evalsha' command", fatal(Cause::commandDenied)},
        {"NOPERM No permissions to access a key", fatal(Cause::keyDenied)},
        {"NOPERM No permissions to access a channel", fatal(Cause::channelDenied)},
        {"NOPERM this user has no permissions to access one of the channels used as arguments",
         fatal(Cause::channelDenied)},
        {"NOPERM The user executing the script can't access at least one of the keys mentioned in the command",
         fatal(Cause::keyDenied)},
        {"ERR ACL failure in script: User access has no permissions to run the 'channel' command",
         fatal(Cause::commandDenied)},
        {"NOPERM this user has no permissions to access one of the keys used as arguments", fatal(Cause::keyDenied)},
        {"ERR The user executing the script can't run this command or subcommand script: 5a1b, on @user_script:1.",
         fatal(Cause::commandDenied)},
        {"ERR Error running script (call to f_5a1b): @user_script:1: The user executing the script can't run this "
         "command or subcommand",
         fatal(Cause::commandDenied)},
        {"@user_script: 33: The user executing the script can't run this command or subcommand",
         fatal(Cause::commandDenied)},
        {"ERR ACL failure in script: User x has no permissions to run the 'pexpire' command",
         fatal(Cause::commandDenied)},
        {"OOM command not allowed when used memory > 'maxmemory'.", refused(Cause::outOfMemory)},
        {"ERR Error running script (call to f_5a1b): @user_script:9: @user_script: 9: -OOM command not allowed when "
         "used "
         "memory > 'maxmemory'.",
         refused(Cause::outOfMemory)},
        {"READONLY You can't write against a read only replica.", demoted(Cause::readOnly)},
        {"ERR Error running script (call to f_5a1b): @user_script:9: @user_script: 9: -READONLY You can't write "
         "against a "
         "read only slave.",
         demoted(Cause::readOnly)},
        {"NOREPLICAS Not enough good replicas to write.", refused(Cause::noReplicas)},
        {"MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.",
         refused(Cause::notPersisted)},
        {"LOADING Redis is loading the dataset in memory", refused(Cause::loading)},
        {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
         refused(Cause::scriptBusy)},
        {"UNKILLABLE Sorry the script already executed write commands against the dataset.",
         refused(Cause::scriptBusy)},
        {"ERR Error running script (call to f_5a1b): @user_script:1: Script killed by user with SCRIPT KILL...",
         refused(Cause::scriptKilled)},
        {"ERR Error running script: Script killed by user with SCRIPT KILL. script: 5a1b, on @user_script:1.",
         refused(Cause::scriptKilled)},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
         demoted(Cause::masterDown)},
        {"TRYAGAIN Multiple keys request during rehashing of slot", refused(Cause::clusterDown)},
        {"CLUSTERDOWN The cluster is down", refused(Cause::clusterDown)},
        {"ERR max number of clients reached", refused(Cause::tooManyClients)},
        {"ERR max number of clients + cluster connections reached", refused(Cause::tooManyClients)},
        {"MOVED 866 127.0.0.1:7001", fatal(Cause::clusterNode)},
        {"ASK 866 127.0.0.1:7001", fatal(Cause::clusterNode)},
        {"CROSSSLOT Keys in request don't hash to the same slot", fatal(Cause::clusterNode)},
        {"ERR unknown command 'EVALSHA', with args beginning with: '5a1b' '1' 'stock:42' ",
         fatal(Cause::unknownCommand)},
        {"ERR unknown command `EVALSHA`, with args beginning with: `5a1b`, `1`, `stock:42`, ",
         fatal(Cause::unknownCommand)},
        {"ERR Unknown command called from script script: 5a1b, on @user_script:24.", fatal(Cause::unknownCommand)},
        {"ERR unknown subcommand 'LIST'. Try CLIENT HELP.", fatal(Cause::unknownCommand)},
        {"ERR Unknown subcommand or wrong number of arguments for 'LIST'. Try CLIENT HELP.",
         fatal(Cause::unknownCommand)},
        {"NOSCRIPT No matching script. Please use EVAL.", bad},
        {"ERR redislock: bad arguments to lock", bad},
        {"ERR wrong number of arguments for 'evalsha' command", bad},
        {"ERR Error compiling script (new function): user_script:1: '=' expected near 'x'", bad},
        {"ERR user_script:1: attempt to call a nil value script: 5a1b, on @user_script:1.", bad},
        {"ERR Error running script (call to f_5a1b): @user_script:1: user_script:1: attempt to call a nil value", bad},
        {"ERR value is not an integer or out of range", bad},
        {"ERR hash value is not an integer", bad},
        {"ERR increment or decrement would overflow", bad},
        {"ERR invalid password", fatal(Cause::wrongPassword)},
        {"ERR Client sent AUTH, but no password is set", fatal(Cause::noPasswordSet)},
        {"ERR AUTH <password> called without any password configured for the default user.",
         fatal(Cause::noPasswordSet)},
        {"ERR DB index is out of range", {Failure::fatal, Errc::noSuchDatabase}},
        {"ERR SELECT is not allowed in cluster mode", {Failure::fatal, Errc::noSuchDatabase}},
    };
    for (const Case& c : cases) {
        const Fault fault = classify(c.text);
        EXPECT_EQ(fault.failure, c.fault.failure) << c.text;
        EXPECT_EQ(fault.error, c.fault.error) << c.text;
    }
}

TEST(Fault, ErrorThatIsNotKnownIsARefusalForNowThatMayHaveBeenExecuted)
{
    for (const std::string_view text : {
             "ERR",
             "",
             " ",
             "no upstream host",
             "WHATEVER text",
             "WHATEVER text script: 5a1b, on @user_script:1.",
             "ERR Connection refused",
             "ERR upstream of TASK MASK7 is booming", // words in longer words
             "ERRATIC OOM",
             "oom lower case is not a word of Redis",
             "BUSYGROUP Consumer Group name already exists",
         }) {
        EXPECT_EQ(classify(text), (Fault{Failure::refused, Errc::serverRefused})) << text;
        EXPECT_TRUE(mayBeExecuted(classify(text))) << text;
    }
    EXPECT_FALSE(mayBeExecuted(classify("OOM command not allowed when used memory > 'maxmemory'.")));
}

TEST(Fault, WordsAmongTheArgumentsThatAnErrorRepeatsAreNotErrors)
{
    for (const std::string_view text : {
             "ERR unknown command 'EVALSHA', with args beginning with: '5a1b' '1' 'ROOM:7' ",
             "ERR unknown command `EVALSHA`, with args beginning with: `5a1b`, `1`, `TASK`, ",
             "ERR unknown command 'EVALSHA', with args beginning with: '5a1b' '1' 'READONLY' ",
             "ERR unknown command 'EVALSHA', with args beginning with: '5a1b' '1' 'WRONGTYPE' ",
         }) {
        EXPECT_EQ(classify(text), (Fault{Failure::fatal, Cause::unknownCommand})) << text;
    }
}

TEST(Fault, WithoutMoreItMeansThatNothingWasSent)
{
    EXPECT_EQ(Fault{}, (Fault{Failure::notConnected, Errc::unreachable}));
}

} // namespace
} // namespace redislock::detail
