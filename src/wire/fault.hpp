/// @file
/// Why a request got no usable answer.
#pragma once

#include "redislock/error.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace redislock::detail {

/// What a failure leaves open.
enum class Failure : std::uint8_t {
    notConnected, ///< no connection could be made; the request was not sent
    lostReply,    ///< the connection, or the caller's time, ended after the request may have been sent
    refused,      ///< the server, or a proxy, answered that it cannot execute the request for now
    demoted,      ///< the server answered that it is a replica, and did nothing: another server is the master now
    moved,        ///< the node answered that another one has the name, or it is not known who: nothing was done
    fatal,        ///< trying again would not help
};

/// An error, as exactly as it is known: an Errc, or a Cause of one.
class Reason {
public:
    constexpr Reason() noexcept = default; ///< none
    constexpr Reason(Errc e) noexcept : value_(static_cast<int>(e)) {}
    constexpr Reason(Cause cause) noexcept : value_(static_cast<int>(cause)) {}

    /// The reason in a code that the library made; `otherwise` for a foreign code.
    static Reason of(const std::error_code& code, Reason otherwise) noexcept
    {
        Reason reason = otherwise;
        if (errcOf(code)) {
            reason.value_ = code.value();
        }
        return reason;
    }

    [[nodiscard]] constexpr Errc errc() const noexcept
    {
        return isCause() ? errcOf(static_cast<Cause>(value_)) : static_cast<Errc>(value_);
    }
    operator std::error_code() const noexcept
    {
        return isCause() ? make_error_code(static_cast<Cause>(value_)) : make_error_code(static_cast<Errc>(value_));
    }

    friend constexpr bool operator==(Reason, Reason) noexcept = default;
    /// As with error codes: a cause equals its Errc too.
    friend constexpr bool operator==(Reason reason, Errc e) noexcept { return reason.errc() == e; }

private:
    [[nodiscard]] constexpr bool isCause() const noexcept { return value_ >= 100; }

    int value_ = 0;
};

/// A failure, and the error that the user gets if it stays.
struct Fault {
    Failure failure = Failure::notConnected;
    Reason error = Errc::unreachable;

    friend bool operator==(const Fault&, const Fault&) = default;
};

/// What an error reply means that nobody here knows: not even whether the request was executed, since a proxy may have
/// said it. It may pass: only errors that are known to last are fatal.
inline constexpr Fault unknownRefusal{Failure::refused, Errc::serverRefused};

/// Whether the request may have been executed all the same.
constexpr bool mayBeExecuted(const Fault& fault) noexcept
{
    return fault.failure == Failure::lostReply || fault.error == Errc::badReply || fault == unknownRefusal;
}

/// Whether the server refuses requests before it begins to execute them: the others may come in the middle of a script.
constexpr bool isBeforeExecution(const Fault& fault) noexcept
{
    return fault.failure == Failure::demoted || fault.failure == Failure::moved ||
           fault.error == Reason(Cause::loading) || fault.error == Reason(Cause::noReplicas) ||
           fault.error == Reason(Cause::clusterDown);
}

/// Whether a phrase stands in a text, and not inside longer words.
constexpr bool mentions(std::string_view text, std::string_view phrase) noexcept
{
    constexpr auto isInWord = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    for (auto at = text.find(phrase); at != std::string_view::npos; at = text.find(phrase, at + 1)) {
        const auto end = at + phrase.size();
        if ((at == 0 || !isInWord(text[at - 1])) && (end == text.size() || !isInWord(text[end]))) {
            return true;
        }
    }
    return false;
}

/// Which right a user lacks, by the server's words.
inline Reason deniedBy(std::string_view text) noexcept
{
    const auto says = [text](std::string_view phrase) { return text.find(phrase) != std::string_view::npos; };
    if (!says("to access ") && !says("can't access ")) {
        return Cause::commandDenied;
    }
    return says("channel") ? Cause::channelDenied : Cause::keyDenied;
}

/// The meaning of an error reply, judged by its first word, and by phrases where Redis gives no word of its own. Any
/// other error, as from a proxy, is an unknown refusal.
inline Fault classify(std::string_view text) noexcept
{
    struct Rule {
        std::string_view word;
        Fault fault;
    };
    constexpr auto fatal = [](Reason error) { return Fault{Failure::fatal, error}; };
    constexpr auto refused = [](Cause cause) { return Fault{Failure::refused, cause}; };
    constexpr auto demoted = [](Cause cause) { return Fault{Failure::demoted, cause}; };
    // before version 7 an error inside a script comes as "ERR Error running script …: -WORD …", or, if the script
    // passes it on, as "@user_script: 12: …": in these, words are searched anywhere
    static constexpr std::array rules{
        // first, since this error repeats arguments, which may contain any of the other words
        Rule{"unknown command", fatal(Cause::unknownCommand)},
        Rule{"Unknown Redis command", fatal(Cause::unknownCommand)},  // of a script
        Rule{"Unknown command called", fatal(Cause::unknownCommand)}, // the same, Valkey
        Rule{"unknown subcommand", fatal(Cause::unknownCommand)},     // so also of miniredis for CLIENT LIST
        Rule{"Unknown subcommand", fatal(Cause::unknownCommand)},     // the same before Redis 7
        Rule{"WRONGTYPE", fatal(Errc::wrongType)},
        Rule{"NOAUTH", fatal(Cause::passwordWanted)},
        Rule{"WRONGPASS", fatal(Cause::wrongPassword)},
        Rule{"invalid password", fatal(Cause::wrongPassword)}, // before Redis 6
        Rule{"without any password configured", fatal(Cause::noPasswordSet)},
        Rule{"no password is set", fatal(Cause::noPasswordSet)},
        Rule{"DENIED", fatal(Cause::protectedMode)},
        Rule{"NOPERM", fatal(Errc::permissionDenied)},
        Rule{"The user executing the script", fatal(Errc::permissionDenied)},
        Rule{"ACL failure in script", fatal(Errc::permissionDenied)}, // Redis from 7.2 on, and Valkey
        Rule{"OOM", refused(Cause::outOfMemory)},
        Rule{"READONLY", demoted(Cause::readOnly)},
        Rule{"UNBLOCKED", demoted(Cause::readOnly)}, // of WAIT
        Rule{"cannot be used with replica instances", demoted(Cause::readOnly)},
        Rule{"appendonly is disabled", fatal(Cause::noAppendOnlyFile)},
        Rule{"NOREPLICAS", refused(Cause::noReplicas)},
        Rule{"MISCONF", refused(Cause::notPersisted)},
        Rule{"LOADING", refused(Cause::loading)},
        Rule{"BUSY", refused(Cause::scriptBusy)},
        Rule{"UNKILLABLE", refused(Cause::scriptBusy)},
        Rule{"Script killed", refused(Cause::scriptKilled)},
        Rule{"MASTERDOWN", demoted(Cause::masterDown)},
        Rule{"TRYAGAIN", refused(Cause::clusterDown)},
        Rule{"CLUSTERDOWN", refused(Cause::clusterDown)},
        Rule{"max number of clients", refused(Cause::tooManyClients)},
        Rule{"MOVED", fatal(Cause::clusterNode)},
        Rule{"ASK", fatal(Cause::clusterNode)},
        Rule{"CROSSSLOT", fatal(Cause::clusterNode)},
        Rule{"not an integer", fatal(Errc::badReply)}, // another program's key
        Rule{"would overflow", fatal(Errc::badReply)},
        Rule{"DB index", fatal(Errc::noSuchDatabase)},
        Rule{"SELECT is not allowed", fatal(Errc::noSuchDatabase)},
        // the request is not the one that was sent, or the server's Lua cannot run it
        Rule{"NOSCRIPT", fatal(Errc::badReply)},
        Rule{"wrong number of arguments", fatal(Errc::badReply)},
        Rule{"redislock: bad arguments", fatal(Errc::badReply)},
        Rule{"Error compiling script", fatal(Errc::badReply)},
        Rule{"user_script", fatal(Errc::badReply)},
    };
    const std::string_view word = text.substr(0, text.find(' '));
    const bool wrapped = word == "ERR" || word == "@user_script:";
    for (const auto& rule : rules) {
        if (word == rule.word || (wrapped && mentions(text, rule.word))) {
            return rule.fault.error == Errc::permissionDenied ? fatal(deniedBy(text)) : rule.fault;
        }
    }
    return unknownRefusal;
}

} // namespace redislock::detail
