/// @file
/// Why a request got no usable answer.
#pragma once

#include "redislock/error.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace redislock::detail {

/// What a failure leaves open.
enum class Failure : std::uint8_t {
    notConnected, ///< no connection could be made; the request was not sent
    lostReply,    ///< the connection, or the caller's time, ended after the request may have been sent
    refused,      ///< the server answered that it cannot do it for now
    demoted,      ///< the server answered that it is a replica, and did nothing: another one is the master now
    fatal,        ///< trying again would not help
};

/// A failure and the error that it becomes for the user if it stays.
struct Fault {
    Failure failure = Failure::notConnected;
    Errc error = Errc::unreachable;

    friend bool operator==(const Fault&, const Fault&) = default;
};

/// The meaning of an error reply, judged by its first word, and by phrases where Redis gives no word of its own.
inline Fault classify(std::string_view text) noexcept
{
    struct Rule {
        std::string_view word;
        Fault fault;
    };
    static constexpr Fault refused{Failure::refused, Errc::serverRefused};
    static constexpr Fault demoted{Failure::demoted, Errc::serverRefused};
    static constexpr Fault unsupported{Failure::fatal, Errc::unsupported};
    // before version 7 an error inside a script comes as "ERR Error running script …: -WORD …", or, where the script
    // hands it on, as "@user_script: 12: …": words are searched there
    static constexpr std::array rules{
        Rule{"unknown command", unsupported}, // first: it repeats arguments, which may hold any of the other words
        Rule{"WRONGTYPE", {Failure::fatal, Errc::wrongType}},
        Rule{"NOAUTH", {Failure::fatal, Errc::authFailed}},
        Rule{"WRONGPASS", {Failure::fatal, Errc::authFailed}},
        Rule{"DENIED", {Failure::fatal, Errc::authFailed}},
        Rule{"NOPERM", {Failure::fatal, Errc::permissionDenied}},
        Rule{"The user executing the script", {Failure::fatal, Errc::permissionDenied}},
        Rule{"ACL failure in script", {Failure::fatal, Errc::permissionDenied}}, // from 7.2 on, and Valkey
        Rule{"OOM", refused},
        Rule{"READONLY", demoted},
        Rule{"NOREPLICAS", refused},
        Rule{"MISCONF", refused},
        Rule{"LOADING", refused},
        Rule{"BUSY", refused},
        Rule{"UNKILLABLE", refused},
        Rule{"Script killed", refused},
        Rule{"MASTERDOWN", demoted},
        Rule{"TRYAGAIN", refused},
        Rule{"CLUSTERDOWN", refused},
        Rule{"max number of clients", refused},
        Rule{"MOVED", unsupported},
        Rule{"ASK", unsupported},
        Rule{"CROSSSLOT", unsupported},
    };
    const std::string_view word = text.substr(0, text.find(' '));
    const bool wrapped = word == "ERR" || word == "@user_script:";
    for (const auto& rule : rules) {
        if (word == rule.word || (wrapped && text.find(rule.word) != std::string_view::npos)) {
            return rule.fault;
        }
    }
    return {Failure::fatal, Errc::badReply};
}

} // namespace redislock::detail
