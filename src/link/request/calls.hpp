/// @file
/// The kinds of request, and what the end of one is for a machine.
#pragma once

#include "link/request/call.hpp"
#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "wire/command.hpp"
#include "wire/key_schema.hpp"
#include "wire/script.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::detail {

/// A request that is no script, and for which a caller waits.
class CommandCall final : public Call {
public:
    explicit CommandCall(std::vector<std::string> words, Slot of = noSlot) : words_(std::move(words)), slot_(of) {}

    void encode(std::string& out, Form /*by*/) override
    {
        appendHeader(out, '*', words_.size());
        for (const auto& word : words_) {
            appendArgument(out, std::string_view(word));
        }
    }
    [[nodiscard]] bool isScript() const noexcept override { return false; }
    [[nodiscard]] Slot slot() const noexcept override { return slot_; }

private:
    const std::vector<std::string> words_;
    const Slot slot_;
};

/// The answer shows that a connection is there: where PING is forbidden, locks may work all the same.
class PingCall final : public Call {
public:
    void encode(std::string& out, Form /*by*/) override
    {
        inOtherWords_ ? appendCommand(out, {"EVAL", "return 1", "1", "redislock"}) : appendCommand(out, {"PING"});
    }

    /// Whether to ask once more, in other words: some proxies refuse PING alone, by an error or by hanging up.
    [[nodiscard]] bool asksAgain(const Outcome& end) noexcept
    {
        const bool isUnknown = end.replied && reply.isError() && classify(reply.text) == unknownRefusal;
        return (isUnknown || end.fault.failure == Failure::lostReply) && !std::exchange(inOtherWords_, true);
    }
    /// Why nothing can be asked now; nothing: the connection works.
    [[nodiscard]] std::error_code obstacle(const Outcome& end) const noexcept
    {
        const Fault fault = end.replied ? classify(reply.text) : end.fault;
        const bool works = end.replied && (!reply.isError() || fault.failure == Failure::fatal);
        return works ? std::error_code() : std::error_code(fault.error);
    }

private:
    bool inOtherWords_ = false;
};

/// A script that is given any number of keys and arguments.
class ScriptCall final : public Call {
public:
    ScriptCall(const Script& script, std::vector<std::string> keys, std::vector<std::string> arguments)
        : script_(script), keys_(std::move(keys)), arguments_(std::move(arguments))
    {
    }

    /// The same request, to be sent once more.
    [[nodiscard]] std::shared_ptr<ScriptCall> again() const
    {
        return std::make_shared<ScriptCall>(script_, keys_, arguments_);
    }

    void encode(std::string& out, Form by) override
    {
        appendScript(out, script_, by, keys_.size(), arguments_.size());
        for (const auto* words : {&keys_, &arguments_}) {
            for (const auto& word : *words) {
                appendArgument(out, std::string_view(word));
            }
        }
    }

    [[nodiscard]] Subject subject() const override { return {&script_, keyPatterns(keys_)}; }
    [[nodiscard]] bool isWanted(TimePoint now) const noexcept override { return now < wantedUntil; }
    [[nodiscard]] Slot slot() const noexcept override { return keys_.empty() ? noSlot : slotOf(keys_.front()); }

    /// The request is not sent after that: the answer to an earlier copy of it may not be kept any more.
    TimePoint wantedUntil = TimePoint::max();

private:
    const Script& script_;
    const std::vector<std::string> keys_;
    const std::vector<std::string> arguments_;
};

/// Templates as for eventOfReply(). @param outcome as the caller got it: one that left early got another outcome than
/// the call has.
template <class Event, class Answer, class... Asked>
Event eventOf(const Call& call, const Outcome& outcome, TimePoint now, Asked... asked)
{
    return outcome.replied ? eventOfReply<Event, Answer>(now, call.sentAt, call.reply, asked...)
                           : Event(Failed{now, outcome.fault, outcome.stood});
}

} // namespace redislock::detail
