/// @file
/// What can go wrong, as values.
#pragma once

#include "redislock/export.hpp"
#include "redislock/requirements.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace boost::system {
class error_code;
} // namespace boost::system

namespace redislock {

/// Operating errors of the library. Contention is not an error: the result is `false`, or an empty guard.
///
/// Every error is reported at once, except `unreachable` and `serverRefused` in calls that may wait: those calls report
/// them when `Config::unreachableAfter` (10 s) or the caller's wait is over.
enum class Errc {
    /// A name, lease or other argument is outside its documented range, and nothing was sent; or the function of a
    /// RetryPolicy threw.
    invalidArgument = 1,
    /// A field of a `Config` or URL breaks its rule, or proved to be wrong; the message names the field, its value and
    /// the rule.
    badConfig,
    /// The server refused the user name or password, or requires one (`WRONGPASS`, `NOAUTH`, protected mode).
    authFailed,
    /// The user may not run a command or use a key that the lock needs (`NOPERM`).
    permissionDenied,
    /// The database number does not exist on this server.
    noSuchDatabase,
    /// What answers at the address does not speak Redis' protocol.
    notRedis,
    /// TLS could not be negotiated: one side does not trust the other, or the server does not speak TLS. For a client
    /// that had been connected before, this is an outage like any other: certificates may be changing.
    tlsFailed,
    /// The server lacks something that the library needs, this build of the library lacks the feature, or the program
    /// uses another hiredis than the library was built with.
    unsupported,
    /// The name belongs to a key of another type, which is left alone.
    wrongType,
    /// unlock() by a thread that does not hold the lock: another thread than its holder, or a second unlock().
    notHeld,
    /// The hold in which a nested lock() was attempted had been lost; nothing was acquired.
    lost,
    /// The call would have to wait on the client's own thread (an observer or stop callback), which must never wait, or
    /// for a hold of its own thread: see the causes.
    wouldDeadlock,
    /// No server answered in time. For an acquire the library releases whatever the server may have granted.
    unreachable,
    /// The server answered, but does not run the command for now (out of memory, read-only, loading, no replicas). Or
    /// it gave an error that the library does not know, as proxies do: the message quotes it, and the command may have
    /// been run.
    serverRefused,
    /// The reply does not fit the request, or is an error about the request itself: something other than a Redis server
    /// changes replies or requests, or another program writes the same keys. The message shows the reply.
    badReply,
    /// The client has been shut down, or destroyed.
    shutdown,
    /// The process was forked; the client belongs to the parent.
    forked,
    /// The function given to asyncExecuteWithLock() threw an exception that has no code.
    functionThrew,
    /// The operating system refused a thread or a file descriptor that the client needs. Nothing was sent; a later call
    /// works once the system has one.
    systemRefused,
    /// Redis granted the lock, but fewer replicas had the grant in time than its Durability asks for. The lock was
    /// released again, and the caller holds nothing.
    notDurable,
};

/// The cause of an Errc, where it is known: the last one that the client met. Calls give these codes for `unreachable`,
/// `badConfig`, `wouldDeadlock`, `notRedis`, `tlsFailed`, `authFailed`, `permissionDenied`, `unsupported`,
/// `serverRefused` and `systemRefused`; each compares equal to its Errc.
///
/// The hundreds of a value are those of the Errc.
enum class Cause {
    // badConfig
    unknownMaster = static_cast<int>(Errc::badConfig) * 100, ///< no Sentinel watches a master of that name
    notSentinel,                                             ///< what answers at a Sentinel's address is not a Sentinel
    addressNotMapped,                                        ///< Config::addressMap threw
    notCluster,   ///< what answers at the address of a node is not part of a cluster
    otherCluster, ///< a node belongs to another cluster than those before it
    sameServer,   ///< two members of a RedLock are on one server
    // wouldDeadlock
    heldAlready = static_cast<int>(Errc::wouldDeadlock) * 100, ///< this thread holds it, and it is not re-entrant
    heldByOtherKind,                                           ///< this thread holds the name by a lock of another kind
    noUpgrade,     ///< this thread holds the lock to read, and wants to write
    clientsThread, ///< the call is made on the client's own thread: in an observer or a stop callback
    // unreachable
    connectionRefused = static_cast<int>(Errc::unreachable) * 100, ///< nothing listens at the address
    hostNotFound,                                                  ///< no name server knows the host name
    lookupFailed,    ///< the host name could not be looked up: no name server answered in time
    socketNotFound,  ///< there is no unix socket at that path
    accessDenied,    ///< the operating system forbids the connection, for instance by the rights of the unix socket
    noRoute,         ///< the network has no route to the address
    connectFailed,   ///< the operating system gives another reason
    connectTimedOut, ///< nothing accepted the connection in time: the machine is off, or a firewall drops packets
    hungUp,          ///< the server closed the connection without an answer, as a port that expects TLS does
    silent,          ///< the server accepted the connection, but did not answer in time
    connectionLost,  ///< a connection that had worked ended before the answer came
    answeredTooLate, ///< each answer came after the lease that it granted had ended
    noSentinel,      ///< no Sentinel could be asked
    noMaster,        ///< no server that a Sentinel names is a master
    // notRedis
    tlsSpoken = static_cast<int>(Errc::notRedis) * 100, ///< TLS is spoken at the address
    // tlsFailed
    certificateNotTrusted = static_cast<int>(Errc::tlsFailed) * 100, ///< no trusted authority signed it
    certificateExpired,      ///< a certificate of the server has expired, or is not valid yet
    certificateNameMismatch, ///< the certificate is for another host; the message lists some of its names
    clientCertificateWanted, ///< the server wants a client certificate, and got none, or one that it does not trust
    tlsNotSpoken,            ///< the server does not speak TLS
    // authFailed
    wrongPassword = static_cast<int>(Errc::authFailed) * 100, ///< `WRONGPASS`, also for a user who does not exist
    passwordWanted,                                           ///< `NOAUTH`: no password was given
    noPasswordSet,                                            ///< a password was given to a server that has none
    credentialsMissing, ///< Config::credentials threw, took too long, or gave credentials that have expired
    protectedMode,      ///< `DENIED`: a server without a password accepts only connections from its own machine
    // permissionDenied
    commandDenied = static_cast<int>(Errc::permissionDenied) * 100, ///< `NOPERM` for a command; the message names it
    keyDenied,     ///< `NOPERM` for a key; the message names the right to grant
    channelDenied, ///< `NOPERM` for a channel
    // unsupported
    unknownCommand = static_cast<int>(Errc::unsupported) * 100, ///< the server does not know a command of the library
    clusterNode,                                                ///< the server is part of a cluster
    sentinel,                                                   ///< the server is a Sentinel, which holds no data
    noAppendOnlyFile,  ///< a Durability asks for the disk, and the server writes no append-only file
    noShardedChannels, ///< Config::notifications is `sharded`, and the node is older than Redis 7
    // serverRefused
    readOnly = static_cast<int>(Errc::serverRefused) * 100, ///< `READONLY`: a replica
    outOfMemory,    ///< `OOM`: the server holds as much as its `maxmemory` allows
    tooManyClients, ///< the server has as many clients as its `maxclients` allows
    loading,        ///< `LOADING`: the server has just started
    noReplicas,     ///< `NOREPLICAS`: fewer replicas follow than `min-replicas-to-write`
    masterDown,     ///< `MASTERDOWN`: a replica that has lost its master
    notPersisted,   ///< `MISCONF`: the server cannot save its data, and accepts no writes
    scriptBusy,     ///< `BUSY`: a script on the server does not end
    scriptKilled,   ///< somebody ended the script
    clusterDown,    ///< `CLUSTERDOWN`, `TRYAGAIN`: a slot has no node, or the key is being moved
    redirected,     ///< `MOVED`, `ASK`: the nodes of the cluster keep redirecting the request
    // systemRefused
    noThread = static_cast<int>(Errc::systemRefused) * 100, ///< no thread (RLIMIT_NPROC, the cgroup's `pids.max`)
    noDescriptor,                                           ///< no file descriptor (RLIMIT_NOFILE)
};

/// The Errc that a cause belongs to.
constexpr Errc errcOf(Cause cause) noexcept
{
    return static_cast<Errc>(static_cast<int>(cause) / 100);
}

/// The Errc of a code of either category; empty for a code of another category. For a `switch`: @p code itself may be a
/// Cause.
REDISLOCK_EXPORT std::optional<Errc> errcOf(const std::error_code& code) noexcept;

/// The category `"redislock"` of the codes made from Errc. **Thread safety**: safe. Never fails.
REDISLOCK_EXPORT const std::error_category& errorCategory() noexcept;
/// The category `"redislock.cause"` of the codes made from Cause. **Thread safety**: safe. Never fails.
REDISLOCK_EXPORT const std::error_category& causeCategory() noexcept;

/// Makes `Errc` convertible to `std::error_code` (and so to `boost::system::error_code`).
REDISLOCK_EXPORT std::error_code make_error_code(Errc e) noexcept;
/// The same for `Cause`.
REDISLOCK_EXPORT std::error_code make_error_code(Cause cause) noexcept;

/// The enumerator's name, `unreachable` for instance; for other values "unknown". For a sentence, see the code's
/// message().
REDISLOCK_EXPORT std::string_view toString(Errc e) noexcept;
/// The same for `Cause`.
REDISLOCK_EXPORT std::string_view toString(Cause cause) noexcept;

/// Whether the code is that error, or one of its causes.
///
/// @code
/// if (ec == redislock::Errc::unreachable) …        // whatever the reason
/// if (ec == redislock::Cause::hostNotFound) …      // this one
/// @endcode
REDISLOCK_EXPORT bool operator==(const std::error_code& code, Errc e) noexcept;
/// The same for the codes of asynchronous calls.
REDISLOCK_EXPORT bool operator==(const boost::system::error_code& code, Errc e) noexcept;

/// The exception that blocking calls throw. `code()` is in `errorCategory()` or, where the cause is known, in
/// `causeCategory()`; `what()` names the lock and the server, says what happened, quotes the server or the system, and
/// says what to do. No message holds a password or raw bytes from the server.
///
/// @code
/// try { lock.lock(); } catch (const redislock::LockError& e) { if (e.code() == redislock::Errc::unreachable) … }
/// @endcode
class REDISLOCK_EXPORT LockError : public std::system_error {
public:
    /// @param code one of Errc or Cause. @param sentence the whole message, printable.
    LockError(std::error_code code, const std::string& sentence);
    /// @param code one of Errc or Cause. @param context what was attempted, printable. @param words what the system,
    /// the resolver or the server said, printable; may be empty. They are put before the advice in the code's message.
    LockError(std::error_code code, const std::string& context, const std::string& words);

    /// One line.
    [[nodiscard]] const char* what() const noexcept override { return text_.what(); }

private:
    std::runtime_error text_; ///< a string that is copied without failing
};

} // namespace redislock

template <>
struct std::is_error_code_enum<redislock::Errc> : std::true_type {
};
template <>
struct std::is_error_code_enum<redislock::Cause> : std::true_type {
};
