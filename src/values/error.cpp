#include "redislock/error.hpp"

#include "values/immortal.hpp"

#include <boost/system/error_code.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace redislock {

namespace {

struct Description {
    Errc code;
    std::string_view name;
    const char* message;
    std::errc condition{}; ///< what a portable handler may compare with; zero: no standard condition fits
};

constexpr std::array descriptions{
    Description{Errc::invalidArgument, "invalidArgument", "an argument is outside its documented range",
                std::errc::invalid_argument},
    Description{Errc::badConfig, "badConfig", "the configuration breaks a rule", std::errc::invalid_argument},
    Description{Errc::authFailed, "authFailed", "the server refused the user name or password, or wants one",
                std::errc::permission_denied},
    Description{Errc::permissionDenied, "permissionDenied", "the user lacks a permission that locks need",
                std::errc::permission_denied},
    Description{Errc::noSuchDatabase, "noSuchDatabase", "the server has no database of this number"},
    Description{Errc::notRedis, "notRedis", "what answered does not speak the Redis protocol",
                std::errc::protocol_error},
    Description{Errc::tlsFailed, "tlsFailed", "TLS could not be agreed on", std::errc::protocol_error},
    Description{Errc::unsupported, "unsupported", "the server, or this version of the library, does not support this",
                std::errc::not_supported},
    Description{Errc::wrongType, "wrongType",
                "the name belongs to a key of another type, or to a lock of another kind"},
    Description{Errc::notHeld, "notHeld", "the caller has no hold to end", std::errc::operation_not_permitted},
    Description{Errc::lost, "lost", "the lock had been lost before"},
    Description{Errc::wouldDeadlock, "wouldDeadlock",
                "the call would wait for its own thread's hold, or on the client's thread, which must never wait",
                std::errc::resource_deadlock_would_occur},
    Description{Errc::unreachable, "unreachable", "no server was reached, or answered in time",
                std::errc::host_unreachable},
    Description{Errc::serverRefused, "serverRefused",
                "the server refuses it for now (read-only, out of memory, loading, or short of replicas)",
                std::errc::resource_unavailable_try_again},
    Description{Errc::badReply, "badReply", "the server gave a reply that cannot be", std::errc::protocol_error},
    Description{Errc::shutdown, "shutdown", "the client was shut down", std::errc::operation_canceled},
    Description{Errc::forked, "forked", "the client belongs to the process that this one was forked from"},
    Description{Errc::functionThrew, "functionThrew", "the function that ran under the lock threw an exception"},
    Description{Errc::systemRefused, "systemRefused", "the operating system refused what the client needs",
                std::errc::resource_unavailable_try_again},
    Description{Errc::notDurable, "notDurable",
                "the lock was granted, but too few replicas had the grant in time, and it was given back",
                std::errc::resource_unavailable_try_again},
};

constexpr const Description* describe(int value) noexcept
{
    const bool known = value >= 1 && static_cast<std::size_t>(value) <= descriptions.size();
    return known ? &descriptions[static_cast<std::size_t>(value) - 1] : nullptr;
}

constexpr bool describesEachInOrder() noexcept
{
    for (const Description& description : descriptions) {
        if (describe(static_cast<int>(description.code)) != &description) {
            return false;
        }
    }
    return static_cast<std::size_t>(Errc::notDurable) == descriptions.size();
}
static_assert(describesEachInOrder());

struct CauseText {
    Cause cause;
    std::string_view name;
    const char* message;
};

constexpr std::array causeTexts{
    CauseText{Cause::unknownMaster, "unknownMaster", "no Sentinel watches a master of that name"},
    CauseText{Cause::notSentinel, "notSentinel",
              "what answers at the address of a Sentinel is a server: use redis://, or the Sentinel's port"},
    CauseText{Cause::addressNotMapped, "addressNotMapped", "Config::addressMap threw"},
    CauseText{Cause::notCluster, "notCluster", "what answers is no node of a cluster: use redis://"},
    CauseText{Cause::otherCluster, "otherCluster", "the node belongs to another cluster than those before it"},
    CauseText{Cause::connectionRefused, "connectionRefused", "nothing listens at the address"},
    CauseText{Cause::hostNotFound, "hostNotFound", "the host name is not known"},
    CauseText{Cause::lookupFailed, "lookupFailed", "the host name could not be looked up"},
    CauseText{Cause::socketNotFound, "socketNotFound", "there is no socket of that path"},
    CauseText{Cause::accessDenied, "accessDenied", "the operating system does not allow the connection"},
    CauseText{Cause::noRoute, "noRoute", "the network has no way to the address"},
    CauseText{Cause::connectFailed, "connectFailed", "the connection could not be made"},
    CauseText{Cause::connectTimedOut, "connectTimedOut", "no connection was made in time: nobody took it"},
    CauseText{Cause::hungUp, "hungUp",
              "the connection was taken, and ended without an answer, as by a server that expects TLS (rediss://)"},
    CauseText{Cause::silent, "silent", "the connection was made, but no answer came in time"},
    CauseText{Cause::connectionLost, "connectionLost", "the connection ended before the answer came"},
    CauseText{Cause::answeredTooLate, "answeredTooLate", "the answers came when the lease that they granted was over"},
    CauseText{Cause::noSentinel, "noSentinel", "no Sentinel could be asked for the master"},
    CauseText{Cause::noMaster, "noMaster", "no server that a Sentinel names calls itself master"},
    CauseText{Cause::tlsSpoken, "tlsSpoken", "what answered speaks TLS: use rediss:// or Config::tls"},
    CauseText{Cause::certificateNotTrusted, "certificateNotTrusted",
              "no authority that is trusted vouches for the server's certificate"},
    CauseText{Cause::certificateExpired, "certificateExpired",
              "a certificate of the server has expired, or is not valid yet"},
    CauseText{Cause::certificateNameMismatch, "certificateNameMismatch",
              "the server's certificate is not for this host"},
    CauseText{Cause::clientCertificateWanted, "clientCertificateWanted",
              "the server wants a certificate of the client that it trusts"},
    CauseText{Cause::tlsNotSpoken, "tlsNotSpoken", "what answered does not speak TLS: use redis:// or another port"},
    CauseText{Cause::wrongPassword, "wrongPassword", "the server does not accept the user name and password"},
    CauseText{Cause::passwordWanted, "passwordWanted", "the server wants a password"},
    CauseText{Cause::noPasswordSet, "noPasswordSet", "a password was given to a server that has none"},
    CauseText{Cause::credentialsMissing, "credentialsMissing", "there are no valid credentials for the server"},
    CauseText{Cause::protectedMode, "protectedMode",
              "the server is in protected mode: without a password it takes no connections from other machines"},
    CauseText{Cause::commandDenied, "commandDenied", "the user has no right to a command that locks need"},
    CauseText{Cause::keyDenied, "keyDenied", "the user has no right to the key"},
    CauseText{Cause::channelDenied, "channelDenied", "the user has no right to the channel"},
    CauseText{Cause::unknownCommand, "unknownCommand", "the server does not know a command that locks need"},
    CauseText{Cause::clusterNode, "clusterNode",
              "the server is one of several nodes of a cluster, for which redis-cluster://HOST,... is meant"},
    CauseText{Cause::sentinel, "sentinel",
              "the server is a Sentinel, for which redis-sentinel://HOST,.../NAME is meant"},
    CauseText{Cause::noAppendOnlyFile, "noAppendOnlyFile", "the server writes no append-only file (appendonly no)"},
    CauseText{Cause::noShardedChannels, "noShardedChannels",
              "the node has no sharded channels, which Redis 7 brought: use notifications=auto"},
    CauseText{Cause::readOnly, "readOnly", "the server is a read-only replica"},
    CauseText{Cause::outOfMemory, "outOfMemory", "the server is out of memory"},
    CauseText{Cause::tooManyClients, "tooManyClients", "the server has as many clients as it takes"},
    CauseText{Cause::loading, "loading", "the server is still loading its data"},
    CauseText{Cause::noReplicas, "noReplicas", "the server takes no writes: too few replicas follow it"},
    CauseText{Cause::masterDown, "masterDown", "the server is a replica that has lost its master"},
    CauseText{Cause::notPersisted, "notPersisted", "the server takes no writes: it cannot save its data"},
    CauseText{Cause::scriptBusy, "scriptBusy", "the server is busy with a script that does not end"},
    CauseText{Cause::scriptKilled, "scriptKilled", "the script was ended by somebody else"},
    CauseText{Cause::clusterDown, "clusterDown", "the server's cluster is not whole, or is being rearranged"},
    CauseText{Cause::redirected, "redirected", "the nodes of the cluster keep sending the request to others"},
    CauseText{Cause::noThread, "noThread", "the operating system has no thread left for the client"},
    CauseText{Cause::noDescriptor, "noDescriptor", "the operating system has no file descriptor left for the client"},
};

const CauseText* textOf(int value) noexcept
{
    const auto* text = std::find_if(causeTexts.begin(), causeTexts.end(),
                                    [value](const CauseText& each) { return static_cast<int>(each.cause) == value; });
    return text != causeTexts.end() ? text : nullptr;
}

class Category final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "redislock"; }

    [[nodiscard]] std::string message(int value) const override
    {
        const Description* description = describe(value);
        return description != nullptr ? description->message : "unknown error";
    }

    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override
    {
        const Description* description = describe(value);
        const bool portable = description != nullptr && description->condition != std::errc{};
        return portable ? std::make_error_condition(description->condition) : std::error_condition(value, *this);
    }
};

/// A code of this category is equivalent to the conditions of its Errc: to the Errc itself, and to the standard
/// condition of the Errc.
class CauseCategory final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "redislock.cause"; }

    [[nodiscard]] std::string message(int value) const override
    {
        const CauseText* text = textOf(value);
        return text != nullptr ? text->message : "unknown cause";
    }

    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override
    {
        return {static_cast<int>(errcOf(static_cast<Cause>(value))), errorCategory()};
    }

    [[nodiscard]] bool equivalent(int value, const std::error_condition& condition) const noexcept override
    {
        const std::error_condition own = default_error_condition(value);
        return own == condition || errorCategory().default_error_condition(own.value()) == condition;
    }
};

} // namespace

const std::error_category& errorCategory() noexcept
{
    static const detail::Immortal<Category> category;
    return category.get();
}

const std::error_category& causeCategory() noexcept
{
    static const detail::Immortal<CauseCategory> category;
    return category.get();
}

std::error_code make_error_code(Errc e) noexcept
{
    return {static_cast<int>(e), errorCategory()};
}

std::error_code make_error_code(Cause cause) noexcept
{
    return {static_cast<int>(cause), causeCategory()};
}

std::string_view toString(Errc e) noexcept
{
    const Description* description = describe(static_cast<int>(e));
    return description != nullptr ? description->name : "unknown";
}

std::string_view toString(Cause cause) noexcept
{
    const CauseText* text = textOf(static_cast<int>(cause));
    return text != nullptr ? text->name : "unknown";
}

std::optional<Errc> errcOf(const std::error_code& code) noexcept
{
    if (code.category() == causeCategory()) {
        return errcOf(static_cast<Cause>(code.value()));
    }
    return code.category() == errorCategory() ? std::optional(static_cast<Errc>(code.value())) : std::nullopt;
}

bool operator==(const std::error_code& code, Errc e) noexcept
{
    return code == std::error_condition(static_cast<int>(e), errorCategory());
}

bool operator==(const boost::system::error_code& code, Errc e) noexcept
{
    return static_cast<std::error_code>(code) == e;
}

} // namespace redislock
