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
    Description{Errc::badConfig, "badConfig", "the configuration breaks a rule, which the exception names",
                std::errc::invalid_argument},
    Description{Errc::authFailed, "authFailed",
                "the server refused the user name or password, or wants one; correct them in the URL or Config",
                std::errc::permission_denied},
    Description{Errc::permissionDenied, "permissionDenied", "the user lacks a right that locks need",
                std::errc::permission_denied},
    Description{Errc::noSuchDatabase, "noSuchDatabase",
                "the server has no database of this number; correct the number, or raise its setting databases"},
    Description{Errc::notRedis, "notRedis", "what answered does not speak the Redis protocol; correct the address",
                std::errc::protocol_error},
    Description{Errc::tlsFailed, "tlsFailed", "TLS could not be negotiated", std::errc::protocol_error},
    Description{Errc::unsupported, "unsupported", "the server, or this build of the library, does not support this",
                std::errc::not_supported},
    Description{Errc::wrongType, "wrongType",
                "the name belongs to a key of another type, or to a lock of another kind"},
    Description{Errc::notHeld, "notHeld",
                "the caller does not hold the lock; it may have unlocked it already, or on another thread",
                std::errc::operation_not_permitted},
    Description{Errc::lost, "lost",
                "the lock was lost before this call; what it protected may have been used by others"},
    Description{Errc::wouldDeadlock, "wouldDeadlock", "the call would wait for its own thread for ever",
                std::errc::resource_deadlock_would_occur},
    Description{Errc::unreachable, "unreachable", "no server could be reached, or none answered in time",
                std::errc::host_unreachable},
    Description{Errc::serverRefused, "serverRefused", "the server does not run the command for now",
                std::errc::resource_unavailable_try_again},
    Description{Errc::badReply, "badReply",
                "the reply does not fit the request; look for a proxy that changes replies, or a program that writes "
                "the same keys",
                std::errc::protocol_error},
    Description{Errc::shutdown, "shutdown", "the client has been shut down", std::errc::operation_canceled},
    Description{Errc::forked, "forked",
                "the client belongs to the parent of this process; make a new one after fork()"},
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
    CauseText{Cause::unknownMaster, "unknownMaster",
              "no Sentinel watches a master of that name; correct the name after the hosts"},
    CauseText{Cause::notSentinel, "notSentinel",
              "the server at the address of a Sentinel is not a Sentinel; use redis://, or the Sentinel's port"},
    CauseText{Cause::addressNotMapped, "addressNotMapped", "Config::addressMap threw an exception"},
    CauseText{Cause::notCluster, "notCluster", "the server is not a node of a cluster; use redis://"},
    CauseText{Cause::otherCluster, "otherCluster",
              "the node belongs to another cluster than the nodes before it; correct the URL or the DNS entry"},
    CauseText{Cause::sameServer, "sameServer",
              "two of the addresses are one server; give each member of a RedLock a server of its own"},
    CauseText{Cause::heldAlready, "heldAlready",
              "this thread holds it already, and the lock is not re-entrant; unlock it first"},
    CauseText{Cause::heldByOtherKind, "heldByOtherKind",
              "this thread holds the name by a lock of another kind; unlock that first"},
    CauseText{Cause::noUpgrade, "noUpgrade",
              "this thread holds the lock to read; it must stop reading before it can write"},
    CauseText{Cause::clientsThread, "clientsThread",
              "the client's own thread must not wait; call from another thread, not from an observer or stop callback"},
    CauseText{Cause::connectionRefused, "connectionRefused",
              "nothing listens at the address; start the server, or correct the address"},
    CauseText{Cause::hostNotFound, "hostNotFound", "the host name is not known; correct the name, or the resolver"},
    CauseText{Cause::lookupFailed, "lookupFailed",
              "the host name could not be looked up; check the resolver and the network"},
    CauseText{Cause::socketNotFound, "socketNotFound",
              "there is no socket at that path; start the server, or correct the path"},
    CauseText{Cause::accessDenied, "accessDenied",
              "the operating system does not allow the connection; check the socket's rights, or the firewall"},
    CauseText{Cause::noRoute, "noRoute", "there is no network route to the address; check the address and the network"},
    CauseText{Cause::connectFailed, "connectFailed", "the connection could not be made"},
    CauseText{Cause::connectTimedOut, "connectTimedOut",
              "nothing accepted the connection in time; check the address, the machine and the firewall"},
    CauseText{Cause::hungUp, "hungUp",
              "the server closed the connection without an answer; use rediss:// if it expects TLS"},
    CauseText{Cause::silent, "silent",
              "the server accepted the connection, but did not answer in time; look at its log and load"},
    CauseText{Cause::connectionLost, "connectionLost",
              "the connection ended before the answer came; look at the log of the server or proxy"},
    CauseText{Cause::answeredTooLate, "answeredTooLate",
              "each answer came after the lease that it granted had ended; use a longer lease"},
    CauseText{Cause::noSentinel, "noSentinel",
              "no Sentinel could be asked for the master; check the addresses of the Sentinels"},
    CauseText{Cause::noMaster, "noMaster",
              "no server that a Sentinel names is a master; check whether a fail-over is stuck"},
    CauseText{Cause::tlsSpoken, "tlsSpoken", "the server speaks TLS; use rediss:// or Config::tls"},
    CauseText{Cause::certificateNotTrusted, "certificateNotTrusted",
              "no trusted authority signed the server's certificate; give the authority's file as ca_file"},
    CauseText{Cause::certificateExpired, "certificateExpired",
              "a certificate of the server has expired or is not valid yet; renew it, or set this machine's clock"},
    CauseText{Cause::certificateNameMismatch, "certificateNameMismatch",
              "the server's certificate is for another host; connect by one of its names, or set server_name"},
    CauseText{Cause::clientCertificateWanted, "clientCertificateWanted",
              "the server wants a client certificate that it trusts; give cert_file and key_file"},
    CauseText{Cause::tlsNotSpoken, "tlsNotSpoken", "the server does not speak TLS; use redis:// or another port"},
    CauseText{Cause::wrongPassword, "wrongPassword",
              "the server does not accept the user name and password; correct them"},
    CauseText{Cause::passwordWanted, "passwordWanted", "the server wants a password; give it in the URL or Config"},
    CauseText{Cause::noPasswordSet, "noPasswordSet",
              "a password was given to a server that has none; leave it out, or set one on the server"},
    CauseText{Cause::credentialsMissing, "credentialsMissing",
              "there are no valid credentials for the server; check what Config::credentials gives"},
    CauseText{Cause::protectedMode, "protectedMode",
              "the server is in protected mode; set a password there, or it accepts only its own machine"},
    CauseText{Cause::commandDenied, "commandDenied", "the user may not run a command that locks need"},
    CauseText{Cause::keyDenied, "keyDenied", "the user may not use a key"},
    CauseText{Cause::channelDenied, "channelDenied", "the user may not use a channel"},
    CauseText{Cause::unknownCommand, "unknownCommand",
              "the server does not know a command that locks need; use a server that the README lists"},
    CauseText{Cause::clusterNode, "clusterNode",
              "the server is one of several nodes of a cluster; use redis-cluster://HOST"},
    CauseText{Cause::sentinel, "sentinel", "the server is a Sentinel; use redis-sentinel://HOST/NAME"},
    CauseText{Cause::noAppendOnlyFile, "noAppendOnlyFile",
              "the server writes no append-only file; set appendonly yes there"},
    CauseText{Cause::noShardedChannels, "noShardedChannels",
              "the node has no sharded channels, which Redis 7 brought; use notifications=auto"},
    CauseText{Cause::readOnly, "readOnly", "the server is a read-only replica; give the address of the master"},
    CauseText{Cause::outOfMemory, "outOfMemory", "the server is out of memory; raise its maxmemory"},
    CauseText{Cause::tooManyClients, "tooManyClients",
              "the server has as many clients as it accepts; raise its maxclients"},
    CauseText{Cause::loading, "loading", "the server is still loading its data; wait until it has started"},
    CauseText{Cause::noReplicas, "noReplicas",
              "the server accepts no writes, since too few replicas follow it; see min-replicas-to-write"},
    CauseText{Cause::masterDown, "masterDown",
              "the server is a replica that has lost its master; give the address of the master"},
    CauseText{Cause::notPersisted, "notPersisted",
              "the server accepts no writes, since it cannot save its data; look at its log and disk"},
    CauseText{Cause::scriptBusy, "scriptBusy",
              "the server is busy with a script that does not end; end it with SCRIPT KILL"},
    CauseText{Cause::scriptKilled, "scriptKilled", "somebody ended the script with SCRIPT KILL; call again"},
    CauseText{Cause::clusterDown, "clusterDown",
              "some slots of the cluster have no node, or are being moved; see redis-cli --cluster check"},
    CauseText{Cause::redirected, "redirected",
              "the nodes of the cluster keep redirecting the request; compare CLUSTER NODES of each"},
    CauseText{Cause::noThread, "noThread",
              "the operating system has no thread left for the client; raise ulimit -u or the cgroup's pids.max"},
    CauseText{Cause::noDescriptor, "noDescriptor",
              "the operating system has no file descriptor left for the client; raise ulimit -n"},
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

/// What the system or the server said stands before the advice in the code's message.
std::string inWords(const std::error_code& code, const std::string& context, const std::string& words)
{
    std::string message = code.message();
    if (!words.empty()) {
        message.insert(std::min(message.find("; "), message.size()), ": " + words);
    }
    return context + ": " + message;
}

} // namespace

LockError::LockError(std::error_code code, const std::string& sentence) : std::system_error(code), text_(sentence) {}

LockError::LockError(std::error_code code, const std::string& context, const std::string& words)
    : std::system_error(code), text_(inWords(code, context, words))
{
}

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
