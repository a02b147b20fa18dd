/// @file
/// The machines over a hostile stream: each is driven as the client drives it, and each of its results is judged by
/// the bytes, not by the machine's interpretation of them.
#pragma once

#include "core/machine/acquire_machine.hpp"
#include "core/machine/query_machine.hpp"
#include "core/machine/release_machine.hpp"
#include "core/machine/renew_machine.hpp"
#include "fuzz/reply_stream.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

namespace redislock::test {

using namespace std::chrono_literals;
using detail::Reply;

/// Virtual time and the stream, behind the requests of one machine.
class Exchange {
public:
    Exchange(std::string_view bytes, std::uint64_t seed) : stream_(bytes, seed), random(seed) {}

    /// Sends a request and reads the stream. @return the event of the answer.
    /// @tparam Event, Answer, Asked as for eventOfReply().
    template <class Event, class Answer, class... Asked>
    Event request(Asked... asked)
    {
        ++requests;
        const TimePoint sentAt = now;
        now += std::chrono::microseconds(random.next() % 40'000);
        last.reset();
        Reply reply;
        for (bool whole = false;;) {
            switch (stream_.next(reply)) {
            case ReplyStream::Status::brokenConnection:
                ++unanswered;
                return detail::Failed{now, {detail::Failure::lostReply, Errc::badReply}};
            case ReplyStream::Status::end:
                ended = true;
                ++unanswered;
                return detail::Failed{now, {detail::Failure::lostReply, Errc::unreachable}};
            case ReplyStream::Status::reply:
                break;
            }
            const bool noScript = reply.isError() && reply.text.starts_with("NOSCRIPT");
            if (!noScript || whole) {
                break;
            }
            whole = true; // the connection sends the script's text, once
        }
        last = reply;
        auto event = detail::eventOfReply<Event, Answer>(now, sentAt, reply, asked...);
        const auto* failed = std::get_if<detail::Failed>(&event);
        unclear += failed != nullptr && mayBeExecuted(failed->fault) ? 1 : 0;
        return event;
    }

    [[nodiscard]] bool lastIsInteger(std::int64_t least, std::int64_t most) const
    {
        return last && last->kind == Reply::Kind::integer && last->integer >= least && last->integer <= most;
    }
    [[nodiscard]] bool lastIsToken() const
    {
        return last && last->kind == Reply::Kind::array && last->elements.size() == 1 &&
               last->elements[0].kind == Reply::Kind::text && !last->elements[0].text.empty();
    }
    [[nodiscard]] bool lastIsText(std::string_view text) const
    {
        return last && last->kind == Reply::Kind::text && last->text == text;
    }
    [[nodiscard]] bool lastIsNil() const { return last && last->kind == Reply::Kind::nil; }
    [[nodiscard]] bool lastIsError(std::string_view word) const
    {
        return last && last->isError() && last->text.find(word) != std::string::npos;
    }

private:
    ReplyStream stream_;

public:
    Random random;
    TimePoint now{1h};
    std::optional<Reply> last; ///< the last answer, if it was answered
    int requests = 0;
    int unanswered = 0; ///< requests whose answer was lost
    int unclear = 0;    ///< answers that the script cannot give
    bool ended = false; ///< no more bytes will come
};

inline constexpr int mostSteps = 20'000; ///< far more than the answers of any input

/// Drives a machine until it is done. @param resume is called with an event. @param request sends.
template <class Machine, class Result>
Result drive(Exchange& exchange, const std::function<typename Machine::Action(const typename Machine::Event&)>& resume,
             const std::function<typename Machine::Event()>& request)
{
    typename Machine::Event event = detail::Start{exchange.now};
    for (int step = 0; step < mostSteps; ++step) {
        const auto action = resume(event);
        if (const auto* done = std::get_if<detail::Done<Result>>(&action)) {
            return done->result;
        }
        if (const auto* sleep = std::get_if<detail::SleepUntil>(&action)) {
            require(sleep->until >= exchange.now - 1h, "a sleep ends at a time");
            exchange.now = std::max(exchange.now, sleep->until);
            event = detail::TimerFired{exchange.now};
            continue;
        }
        if constexpr (std::is_same_v<Machine, detail::AcquireMachine>) {
            if (const auto* subscribe = std::get_if<detail::Subscribe>(&action)) {
                exchange.now += 1ms;
                require(subscribe->until > TimePoint{}, "a subscription has a time");
                event = detail::Notified{exchange.now};
                continue;
            }
        }
        // a request without an answer is cancelled after a while, as by a shutdown
        event = exchange.ended && step > 100 ? typename Machine::Event(detail::Cancelled{exchange.now, Errc::shutdown})
                                             : request();
    }
    require(false, "a machine comes to an end");
    return {};
}

inline void checkAcquire(Exchange& exchange, const detail::AcquireMachine::Settings& settings, detail::Tokens tokens,
                         detail::Level level)
{
    using Machine = detail::AcquireMachine;
    using Kind = detail::AcquireResult::Kind;
    Machine machine(settings);
    int grants = 0;
    int busyAnswers = 0;
    TimePoint asked{};
    const auto isGrant = [&] { return tokens == detail::Tokens::none ? exchange.lastIsNil() : exchange.lastIsToken(); };
    const auto result = drive<Machine, detail::AcquireResult>(
        exchange, [&](const Machine::Event& event) { return machine.resume(event, exchange.random); },
        [&] {
            asked = exchange.now;
            auto event = exchange.request<Machine::Event, detail::LockAnswer>(tokens, level);
            grants += isGrant() ? 1 : 0;
            busyAnswers += level == detail::Level::outermost && exchange.lastIsInteger(-2, INT64_MAX) ? 1 : 0;
            return event;
        });
    if (result.kind == Kind::granted) {
        require(isGrant(), "only nil is a grant, or of a kind with tokens, one");
        require((result.token > 0) == (tokens == detail::Tokens::given), "a token comes with the grants that have one");
        require(result.sentAt == asked && result.validUntil == detail::deadlineOf(asked, settings.lease),
                "a grant counts from when its request was sent");
        require(exchange.now < result.validUntil, "a grant that is over is none");
        return;
    }
    require(result.kind != Kind::lost || (level == detail::Level::nested && exchange.lastIsInteger(-3, -3)),
            "only -3 is a lost hold");
    require(result.kind != Kind::contended || busyAnswers > 0, "only a holder's time is contention");
    const bool open = exchange.unanswered > 0 || exchange.unclear > 0 || grants > 0;
    require(result.mayBeHeld || !open, "what may have been granted is given back");
}

inline void checkRelease(Exchange& exchange, const detail::ReleaseMachine::Settings& settings)
{
    using Machine = detail::ReleaseMachine;
    Machine machine(settings);
    const auto how = drive<Machine, Unlocked>(
        exchange, [&](const Machine::Event& event) { return machine.resume(event, exchange.random); },
        [&] { return exchange.request<Machine::Event, detail::UnlockAnswer>(settings.level); });
    switch (how) {
    case Unlocked::released:
        require(exchange.lastIsInteger(1, INT64_MAX) ||
                    (exchange.lastIsNil() && exchange.unanswered + exchange.unclear > 0),
                "released: Redis said so, or found nothing after a try without answer");
        return;
    case Unlocked::stillHeld:
        require(settings.level == detail::Level::nested && exchange.lastIsInteger(0, 0), "only 0 is still held");
        return;
    case Unlocked::alreadyLost:
        require(exchange.lastIsNil() || exchange.lastIsError("WRONGTYPE"), "lost only where Redis has nothing of ours");
        return;
    case Unlocked::unconfirmed:
        require(!exchange.lastIsNil() &&
                    !(settings.level == detail::Level::nested ? exchange.lastIsInteger(0, 0)
                                                              : exchange.lastIsInteger(1, INT64_MAX)),
                "an answer is believed");
        return;
    case Unlocked::passedOn:
        require(false, "a request is not passed on");
    }
}

inline void checkRenewal(Exchange& exchange)
{
    using Machine = detail::RenewMachine;
    Machine machine;
    const auto end = drive<Machine, detail::RenewalEnd>(
        exchange, [&](const Machine::Event& event) { return machine.resume(event, 30s, exchange.random); },
        [&] { return exchange.request<Machine::Event, detail::RenewAnswer>(std::size_t{1}, std::size_t{0}); });
    require(end != detail::RenewalEnd::lost || exchange.lastIsText("0") || exchange.lastIsText("w"),
            "only 0 and a key of another type are a loss");
    require(end != detail::RenewalEnd::cancelled || exchange.ended, "renewal does not give up by itself");
}

inline void checkQuery(Exchange& exchange)
{
    using Machine = detail::QueryMachine;
    Machine machine(10s);
    const auto error = drive<Machine, std::optional<detail::Reason>>(
        exchange, [&](const Machine::Event& event) { return machine.resume(event, exchange.random); },
        [&] { return exchange.request<Machine::Event, detail::Answered>(); });
    require(error || (exchange.last && !exchange.last->isError()), "an answer that is none of an error");
    require(machine.repeated() == (exchange.unanswered + exchange.unclear > 0),
            "it knows whether a try was not answered");
}

} // namespace redislock::test
