/// @file
/// One request and what became of it.
#pragma once

#include "link/request/signal.hpp"
#include "redislock/clock.hpp"
#include "wire/command.hpp"
#include "wire/fault.hpp"
#include "wire/reply.hpp"
#include "wire/script.hpp"
#include "wire/slot.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {

/// What became of a call: a reply, or a failure with its reason.
struct Outcome {
    bool replied = false;
    Fault fault;                       ///< when not replied
    std::chrono::nanoseconds stood{0}; ///< how long this process stood still while a thread waited
    bool calledOff = false;            ///< the caller was told to stop waiting: the call is still queued, or under way
};

class Call;

/// Whoever made a request for which no thread waits.
class Requester {
public:
    Requester() = default;
    Requester(const Requester&) = delete;
    Requester& operator=(const Requester&) = delete;
    virtual ~Requester() = default;
    /// The request has ended. Called on the thread that read the reply, without a mutex.
    virtual void answered(Call& call) noexcept = 0;
};

/// A request on a connection. Shared between the caller that waits for it and the connection, which keeps it until its
/// reply was read.
///
/// Until the call is finished, the connection guards all its members but the signal.
class Call {
public:
    /// How a script is named.
    enum class Form : std::uint8_t {
        bySha,  ///< EVALSHA
        byText, ///< EVAL, after NOSCRIPT
    };

    Call() = default;
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    virtual ~Call() = default;

    /// Appends the request's bytes. Called each time the request is put on a connection.
    virtual void encode(std::string& out, Form by) = 0;

    /// What a message says of the request.
    struct Subject {
        const Script* script = nullptr;
        std::vector<std::string> keys = {}; ///< as keyPatterns() gives them
    };
    /// Guarded as encode() is.
    [[nodiscard]] virtual Subject subject() const { return {}; }

    /// Whether the request may be made by a script's text, where the server does not know its SHA1.
    [[nodiscard]] virtual bool isScript() const noexcept { return true; }

    /// Whether the request is still worth sending; asked before its bytes are made again. Any thread.
    [[nodiscard]] virtual bool isWanted(TimePoint /*now*/) const noexcept { return true; }

    /// Whether a repetition of the request may be executed before it, and both of them.
    [[nodiscard]] virtual bool isInNoOrder() const noexcept { return false; }

    /// The slot of its keys, in a cluster; noSlot: any node may answer. Any thread.
    [[nodiscard]] virtual Slot slot() const noexcept { return noSlot; }

    /// The end of a call that no thread waits for: called on the thread that read the reply, without a mutex.
    virtual void finished() noexcept
    {
        if (const auto told = std::exchange(requester, nullptr)) {
            told->answered(*this);
        }
    }

    /// Who waits for the end.
    enum class Mode : std::uint8_t {
        awaited,   ///< a thread sleeps on `signal`
        detached,  ///< no thread: finished() is called
        abandoned, ///< nobody any more: the reply is read and dropped
    };

    TimePoint sentAt{};
    Reply reply;
    Outcome outcome;
    std::atomic<Mode> mode{Mode::awaited};
    std::chrono::milliseconds serverWaits{0}; ///< how long the server itself may wait before it answers
    bool isHurried = false; ///< its caller does not wait long: the next attempt to connect comes after a short pause
    Form form = Form::bySha;
    std::uint16_t server = 0; ///< the node of a cluster to which it was given
    bool asks = false;        ///< the node answered ASK: the next try goes to where the slot is being moved
    bool isAsking = false;    ///< goes there, behind ASKING: for such a request alone the node answers for the slot
    std::atomic<bool> pending{false}; ///< on a connection
    Signal signal;
    std::shared_ptr<Requester> requester; ///< of a detached call, until its end; null: nobody is told
    std::shared_ptr<Call> next;           ///< in a list of ended calls
};

/// Appends the beginning of a script's request: all that stands before the keys.
inline void appendScript(std::string& out, const Script& script, Call::Form by, std::size_t keys, std::size_t arguments)
{
    appendHeader(out, '*', 3 + keys + arguments);
    if (by == Call::Form::bySha) {
        constexpr std::string_view evalSha = "$7\r\nEVALSHA\r\n$40\r\n"; // in front of most requests
        out.append(evalSha).append(script.sha1).append("\r\n", 2);
    } else {
        appendArgument(out, std::string_view("EVAL"));
        appendArgument(out, std::string_view(script.text()));
    }
    appendArgument(out, static_cast<std::int64_t>(keys));
}

/// Whether a reply says that the server does not know a script's SHA1.
inline bool isNoScript(const Reply& reply) noexcept
{
    return reply.isError() && reply.text.starts_with("NOSCRIPT");
}

/// Whether a reply says that another node of the cluster has the name.
inline bool isRedirection(const Reply& reply) noexcept
{
    return reply.isError() && (reply.text.starts_with("MOVED ") || reply.text.starts_with("ASK "));
}

/// Whether a reply says that the server is no master any more.
inline bool isDemotion(const Reply& reply) noexcept
{
    return reply.isError() && classify(reply.text).failure == Failure::demoted;
}

} // namespace redislock::detail
