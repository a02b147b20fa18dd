/// @file
/// What can go wrong, as values.
#pragma once

#include "redislock/export.hpp"
#include "redislock/requirements.hpp"

#include <string>
#include <system_error>

namespace redislock {

/// Operating errors of the library. Contention is none of them: it is the result `false`, or an empty guard.
///
/// Every error is told at once, except `unreachable` and `serverRefused` in calls that may wait: there they come when
/// `Config::unreachableAfter` (10 s) or the caller's wait is over.
enum class Errc {
    /// A name, lease or other argument outside its documented range: nothing was sent. Or the function of a RetryPolicy
    /// threw.
    invalidArgument = 1,
    /// A `Config` or URL with a field outside its rule; the message names the field, its value and the rule.
    badConfig,
    /// The server refused the user name or password, or wants one (`WRONGPASS`, `NOAUTH`, protected mode).
    authFailed,
    /// The user may not run a command or use a key that the lock needs (`NOPERM`).
    permissionDenied,
    /// The database number does not exist on this server.
    noSuchDatabase,
    /// What answers at the address does not speak Redis' protocol.
    notRedis,
    /// The server lacks something the library needs, or the feature comes with a later version of the library.
    unsupported,
    /// The name belongs to a key of another type; it is left alone.
    wrongType,
    /// unlock() by a thread that has no hold to end: a stranger, or a second unlock().
    notHeld,
    /// The hold in which a nested lock() was attempted turned out to be lost; nothing was acquired.
    lost,
    /// The call would have to wait on the library's own thread (observer or stop callback), which must never wait.
    wouldDeadlock,
    /// No server answered in time. For an acquire the library releases whatever the server may have granted.
    unreachable,
    /// The server answered, but refuses to run the command for now (out of memory, read-only, loading, no replicas).
    serverRefused,
    /// A reply that the script cannot give: something other than a Redis server rewrites replies.
    badReply,
    /// The client was shut down, or destroyed.
    shutdown,
    /// The process was forked; the client belongs to the parent.
    forked,
    /// The function given to asyncExecuteWithLock() threw an exception that has no code.
    functionThrew,
};

/// The category `"redislock"` of the codes made from Errc. **Thread safety**: safe. Never fails.
REDISLOCK_EXPORT const std::error_category& errorCategory() noexcept;

/// Makes `Errc` convertible to `std::error_code` (and so to `boost::system::error_code`).
REDISLOCK_EXPORT std::error_code make_error_code(Errc e) noexcept;

/// What the blocking calls throw. `code()` is in `errorCategory()`; `what()` says what happened to which lock. No
/// message holds a password or raw bytes from the server.
///
/// @code
/// try { lock.lock(); } catch (const redislock::LockError& e) { if (e.code() == redislock::Errc::unreachable) … }
/// @endcode
class REDISLOCK_EXPORT LockError : public std::system_error {
public:
    /// @param code one of Errc. @param context what was attempted, printable.
    LockError(std::error_code code, const std::string& context) : std::system_error(code, context) {}
};

} // namespace redislock

template <>
struct std::is_error_code_enum<redislock::Errc> : std::true_type {
};
