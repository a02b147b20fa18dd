#include "redislock/error.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <system_error>

namespace redislock {
namespace {

constexpr Errc allErrors[] = {
    Errc::invalidArgument, Errc::badConfig,     Errc::authFailed,    Errc::permissionDenied, Errc::noSuchDatabase,
    Errc::notRedis,        Errc::unsupported,   Errc::wrongType,     Errc::notHeld,          Errc::lost,
    Errc::wouldDeadlock,   Errc::unreachable,   Errc::serverRefused, Errc::badReply,         Errc::shutdown,
    Errc::forked,          Errc::functionThrew, Errc::systemRefused, Errc::notDurable,
};

constexpr Cause allCauses[] = {
    Cause::unknownMaster,
    Cause::notSentinel,
    Cause::addressNotMapped,
    Cause::sameServer,
    Cause::heldAlready,
    Cause::heldByOtherKind,
    Cause::noUpgrade,
    Cause::clientsThread,
    Cause::connectionRefused,
    Cause::hostNotFound,
    Cause::lookupFailed,
    Cause::socketNotFound,
    Cause::accessDenied,
    Cause::noRoute,
    Cause::connectFailed,
    Cause::connectTimedOut,
    Cause::hungUp,
    Cause::silent,
    Cause::connectionLost,
    Cause::answeredTooLate,
    Cause::noSentinel,
    Cause::noMaster,
    Cause::tlsSpoken,
    Cause::certificateNotTrusted,
    Cause::certificateExpired,
    Cause::certificateNameMismatch,
    Cause::clientCertificateWanted,
    Cause::tlsNotSpoken,
    Cause::wrongPassword,
    Cause::passwordWanted,
    Cause::noPasswordSet,
    Cause::credentialsMissing,
    Cause::protectedMode,
    Cause::commandDenied,
    Cause::keyDenied,
    Cause::channelDenied,
    Cause::unknownCommand,
    Cause::clusterNode,
    Cause::sentinel,
    Cause::noAppendOnlyFile,
    Cause::noShardedChannels,
    Cause::readOnly,
    Cause::outOfMemory,
    Cause::tooManyClients,
    Cause::loading,
    Cause::noReplicas,
    Cause::masterDown,
    Cause::notPersisted,
    Cause::scriptBusy,
    Cause::scriptKilled,
    Cause::clusterDown,
    Cause::redirected,
    Cause::notCluster,
    Cause::otherCluster,
    Cause::noThread,
    Cause::noDescriptor,
};

TEST(ErrorCategory, HasTheLibrarysName)
{
    EXPECT_STREQ(errorCategory().name(), "redislock");
    EXPECT_EQ(&errorCategory(), &errorCategory());
}

TEST(ErrorCategory, SaysSomethingElseForEachError)
{
    std::set<std::string> messages;
    for (const Errc e : allErrors) {
        const std::string message = make_error_code(e).message();
        EXPECT_GE(message.size(), 15U) << message;
        EXPECT_NE(message, "unknown error");
        EXPECT_NE(message.back(), '.') << message;
        messages.insert(message);
    }
    EXPECT_EQ(messages.size(), std::size(allErrors));
}

TEST(ErrorCategory, SurvivesValuesThatAreNoErrc)
{
    for (const int value : {0, -1, static_cast<int>(Errc::notDurable) + 1, 1 << 30}) {
        const std::error_code code(value, errorCategory());
        EXPECT_EQ(code.message(), "unknown error") << value;
        EXPECT_EQ(code.default_error_condition(), std::error_condition(value, errorCategory())) << value;
    }
}

TEST(Errc, BecomesACodeThatIsAnErrorAndEqualToItself)
{
    for (const Errc e : allErrors) {
        const std::error_code code = e;
        EXPECT_TRUE(code);
        EXPECT_EQ(code, e);
        EXPECT_EQ(&code.category(), &errorCategory());
        for (const Errc other : allErrors) {
            EXPECT_EQ(code == other, e == other);
        }
    }
}

TEST(Errc, ComparesWithWhatTheStandardCallsTheSame)
{
    struct Case {
        const char* name;
        Errc code;
        std::errc condition;
    };
    const Case cases[] = {
        {"invalidArgument", Errc::invalidArgument, std::errc::invalid_argument},
        {"badConfig", Errc::badConfig, std::errc::invalid_argument},
        {"authFailed", Errc::authFailed, std::errc::permission_denied},
        {"permissionDenied", Errc::permissionDenied, std::errc::permission_denied},
        {"notRedis", Errc::notRedis, std::errc::protocol_error},
        {"unsupported", Errc::unsupported, std::errc::not_supported},
        {"notHeld", Errc::notHeld, std::errc::operation_not_permitted},
        {"wouldDeadlock", Errc::wouldDeadlock, std::errc::resource_deadlock_would_occur},
        {"unreachable", Errc::unreachable, std::errc::host_unreachable},
        {"serverRefused", Errc::serverRefused, std::errc::resource_unavailable_try_again},
        {"badReply", Errc::badReply, std::errc::protocol_error},
        {"shutdown", Errc::shutdown, std::errc::operation_canceled},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(make_error_code(c.code), c.condition) << c.name;
    }
    for (const Errc e : {Errc::noSuchDatabase, Errc::wrongType, Errc::lost, Errc::forked}) {
        EXPECT_EQ(&make_error_code(e).default_error_condition().category(), &errorCategory());
    }
}

TEST(Errc, PassesThroughBoostsCodeAndBackUnchanged)
{
    for (const Errc e : allErrors) {
        const boost::system::error_code there = make_error_code(e);
        EXPECT_TRUE(there.failed());
        EXPECT_TRUE(there == e);
        EXPECT_FALSE(there == (e == Errc::lost ? Errc::forked : Errc::lost));
        EXPECT_EQ(there.message(), make_error_code(e).message());

        const std::error_code back = there;
        EXPECT_EQ(back, e);
        EXPECT_EQ(&back.category(), &errorCategory());
        EXPECT_EQ(back.value(), static_cast<int>(e));
    }
}

TEST(Errc, KeepsItsMeaningInBoostsException)
{
    const boost::system::system_error error(make_error_code(Errc::unreachable), "stock:42");
    EXPECT_TRUE(error.code() == Errc::unreachable);
    EXPECT_EQ(std::error_code(error.code()), Errc::unreachable);
}

TEST(Errc, IsNotMixedUpWithAnotherCategorysCodeOfTheSameValue)
{
    const std::error_code system(static_cast<int>(Errc::lost), std::system_category());
    EXPECT_NE(system, Errc::lost);
    const boost::system::error_code boosts(static_cast<int>(Errc::lost), boost::system::system_category());
    EXPECT_NE(std::error_code(boosts), Errc::lost);
}

TEST(Cause, SaysSomethingElseForEachAndThanItsError)
{
    std::set<std::string> messages;
    for (const Cause cause : allCauses) {
        const std::string message = make_error_code(cause).message();
        EXPECT_NE(message, "unknown cause");
        EXPECT_NE(message, make_error_code(errcOf(cause)).message());
        EXPECT_NE(message.back(), '.') << message;
        messages.insert(message);
    }
    EXPECT_EQ(messages.size(), std::size(allCauses));
    for (const int value : {0, -1, 1, static_cast<int>(Cause::noMaster) + 1, 1 << 30}) {
        EXPECT_EQ(std::error_code(value, causeCategory()).message(), "unknown cause") << value;
    }
}

TEST(Cause, ComparesAsItsErrorAndAsNoOther)
{
    for (const Cause cause : allCauses) {
        const std::error_code code = cause;
        const boost::system::error_code boosts = code;
        for (const Errc e : allErrors) {
            const bool isOf = e == errcOf(cause);
            EXPECT_EQ(code == e, isOf) << code.message();
            EXPECT_EQ(e == code, isOf) << code.message();
            EXPECT_EQ(code != e, !isOf) << code.message();
            EXPECT_EQ(boosts == e, isOf) << code.message();
            EXPECT_EQ(e == boosts, isOf) << code.message();
            EXPECT_EQ(boosts != e, !isOf) << code.message();
        }
        EXPECT_TRUE(boosts == cause);
        EXPECT_EQ(std::error_code(boosts), cause);
        EXPECT_EQ(errcOf(code), errcOf(cause));
    }
    EXPECT_NE(make_error_code(Cause::hostNotFound), Cause::silent);
}

TEST(Cause, ComparesWithWhatTheStandardCallsItsError)
{
    EXPECT_EQ(make_error_code(Cause::connectionRefused), std::errc::host_unreachable);
    EXPECT_EQ(make_error_code(Cause::noMaster), std::errc::host_unreachable);
    EXPECT_EQ(make_error_code(Cause::unknownMaster), std::errc::invalid_argument);
    EXPECT_EQ(make_error_code(Cause::wrongPassword), std::errc::permission_denied);
    EXPECT_EQ(make_error_code(Cause::keyDenied), std::errc::permission_denied);
    EXPECT_EQ(make_error_code(Cause::readOnly), std::errc::resource_unavailable_try_again);
    EXPECT_NE(make_error_code(Cause::readOnly), std::errc::permission_denied);
}

TEST(Cause, HasAName)
{
    std::set<std::string_view> names;
    for (const Errc e : allErrors) {
        names.insert(toString(e));
    }
    for (const Cause cause : allCauses) {
        names.insert(toString(cause));
    }
    EXPECT_EQ(names.size(), std::size(allErrors) + std::size(allCauses));
    EXPECT_FALSE(names.contains("unknown"));
    EXPECT_EQ(toString(Errc::wouldDeadlock), "wouldDeadlock");
    EXPECT_EQ(toString(Cause::outOfMemory), "outOfMemory");
    EXPECT_EQ(toString(Errc{}), "unknown");
    EXPECT_EQ(toString(Cause{}), "unknown");
}

TEST(Cause, ACodeOfAnotherCategoryHasNoError)
{
    EXPECT_EQ(errcOf(make_error_code(Errc::lost)), Errc::lost);
    EXPECT_EQ(errcOf(std::error_code(static_cast<int>(Errc::lost), std::system_category())), std::nullopt);
    EXPECT_EQ(errcOf(std::error_code()), std::nullopt);
}

TEST(LockError, SaysWhatTheServerOrTheSystemSaidBeforeWhatToDo)
{
    const LockError error(Cause::connectionRefused, "lock \"stock:42\" at 127.0.0.1:1", "Connection refused");
    EXPECT_EQ(error.code(), Errc::unreachable);
    EXPECT_STREQ(error.what(), "lock \"stock:42\" at 127.0.0.1:1: nothing listens at the address: Connection refused; "
                               "start the server, or correct the address");
    const LockError copy = error;
    EXPECT_STREQ(copy.what(), error.what());
}

TEST(LockError, SaysWhatWasAttemptedAndWhatWentWrong)
{
    const LockError error(Errc::unreachable, "lock \"stock:42\"", {});
    EXPECT_EQ(error.code(), Errc::unreachable);
    EXPECT_STREQ(error.what(), "lock \"stock:42\": no server could be reached, or none answered in time");
    EXPECT_STREQ(LockError(Errc::badConfig, "URL: the host is empty").what(), "URL: the host is empty");
}

TEST(LockError, IsCaughtAsASystemError)
{
    try {
        throw LockError(Errc::notHeld, "unlock");
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), Errc::notHeld);
        EXPECT_EQ(error.code(), std::errc::operation_not_permitted);
    }
}

} // namespace
} // namespace redislock
