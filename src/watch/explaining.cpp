// Who has a lock, in two round trips on the command connection.
#include "client/lock/thread_calls.hpp"
#include "core/lock_fields.hpp"
#include "link/request/calls.hpp"
#include "values/system/process.hpp"
#include "wire/key_schema.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {

namespace {

/// With more fields than that, the reply is larger than what a client accepts.
constexpr std::uint64_t maxFields = 256;

using Words = std::vector<std::string>;

/// A question with which other requests go along, in one packet. An error reply to one of these is an answer.
class Explaining {
public:
    Explaining(Engine& engine, std::vector<Words> alongside) : engine_(engine), alongside_(std::move(alongside)) {}

    /// Asks again, if a connection ended before all requests had their answers, or if one was refused for now.
    std::error_code ask(const Words& words, Reply& reply)
    {
        constexpr int most = 3;
        std::error_code ec;
        for (int tries = 0; tries < most; ++tries) {
            ec = askOnce(words, reply);
            if (ec || (isWhole() && std::ranges::none_of(answers_, isRefusedForNow))) {
                return ec;
            }
        }
        return isWhole() ? ec : Cause::connectionLost;
    }

    /// The answers to the other requests, in their order.
    [[nodiscard]] const std::vector<Reply>& answers() const noexcept { return answers_; }

private:
    static bool isRefusedForNow(const Reply& answer) noexcept
    {
        return answer.isError() && classify(answer.text).failure == Failure::refused;
    }
    [[nodiscard]] bool isWhole() const noexcept { return answers_.size() == alongside_.size(); }

    std::error_code askOnce(const Words& words, Reply& reply)
    {
        std::vector<std::shared_ptr<CommandCall>> others;
        for (const auto& each : alongside_) {
            others.push_back(std::make_shared<CommandCall>(each));
            engine_.commands().enqueue(others.back());
        }
        const auto call = std::make_shared<CommandCall>(words);
        QueryMachine machine(engine_.config().unreachableAfter);
        const auto ec = ThreadCalls::query(engine_, call, machine);
        reply = call->reply;
        answers_.clear();
        // the others were answered before, if at all; after an error nobody waits for them
        const TimePoint until = ec ? BootClock::now() : BootClock::now() + engine_.config().commandTimeout;
        for (const auto& other : others) {
            if (engine_.commands().await(*other, until).replied) {
                answers_.push_back(other->reply);
            }
        }
        return ec;
    }

    Engine& engine_;
    const std::vector<Words> alongside_;
    std::vector<Reply> answers_;
};

/// Adds what only this process knows about its own holds.
void placeOwn(LockReport& report, const Engine& engine)
{
    for (auto& holder : report.holders) {
        if (holder.clientId == engine.id()) {
            const auto& program = engine.config().clientName;
            holder.program = program.empty() ? "redislock" : program;
            holder.host = hostName();
            holder.process = static_cast<std::uint64_t>(::getpid());
        }
    }
}

} // namespace

std::optional<LockReport> ThreadCalls::explain(NamedLock& named, std::error_code& ec)
{
    Engine& engine = engineOf(named);
    if (const auto refused = engine.refusal()) {
        ec = *refused;
        return std::nullopt;
    }
    const auto& name = named.name;
    const bool isReadWrite = named.kind == LockKind::readLock || named.kind == LockKind::writeLock;
    Explaining first(engine,
                     {{"EXISTS", prefixed(tokenPrefix, name)},
                      {"LLEN", prefixed(queuePrefix, name)},
                      {"PUBSUB", "NUMSUB", prefixed(isReadWrite ? readWriteChannelPrefix : lockChannelPrefix, name)}});
    Reply size;
    ec = first.ask({"HLEN", name}, size);
    const auto fields = numberIn(size).value_or(0);
    if (ec || fields == 0) {
        return std::nullopt;
    }
    Explaining second(engine, {{"HGET", name, "mode"}, {"PTTL", name}});
    LockFields found;
    const bool isCrowd = fields > maxFields;
    ec = second.ask(isCrowd ? Words{"HLEN", name} : Words{"HSCAN", name, "0", "COUNT", "300"}, found.page);
    if (ec) {
        return std::nullopt;
    }
    found.mode = second.answers()[0];
    found.timeToLive = second.answers()[1];
    for (const Reply* needed : {&found.mode, &found.timeToLive}) {
        if (needed->isError()) {
            ec = classify(needed->text).error;
            return std::nullopt;
        }
    }
    auto report = isCrowd ? reportOfCrowd(name, found) : reportOf(name, found);
    if (!report && !isGone(found) && (!isCrowd || numberIn(found.page).value_or(0) > maxFields)) {
        ec = Errc::wrongType;
    } else if (report) {
        LockSurroundings around;
        around.hasToken = numberIn(first.answers()[0]).value_or(0) > 0;
        around.queued = numberIn(first.answers()[1]);
        const auto& listeners = first.answers()[2].elements;
        around.listeners = listeners.size() == 2 ? numberIn(listeners[1]) : std::nullopt;
        addSurroundings(*report, around);
        placeOwn(*report, engine);
    }
    return report;
}

} // namespace redislock::detail
