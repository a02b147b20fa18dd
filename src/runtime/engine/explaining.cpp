// Who has a lock, in two round trips on the command connection.
#include "logic/call/command_call.hpp"
#include "redislock/detail/logic/lock_fields.hpp"
#include "redislock/detail/protocol/key_schema.hpp"
#include "runtime/base/process.hpp"
#include "runtime/engine/thread_calls.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {

namespace {

/// More fields than that, and the reply is larger than what a client takes.
constexpr std::uint64_t maxFields = 256;

using Words = std::vector<std::string>;

/// A question that others go along with, in one packet: what they are answered is of use, but they may fail.
class Explaining {
public:
    Explaining(Engine& engine, std::vector<Words> alongside) : engine_(engine)
    {
        for (auto& words : alongside) {
            alongside_.push_back(std::make_shared<CommandCall>(std::move(words)));
        }
    }

    std::error_code ask(Words words, Reply& reply)
    {
        for (const auto& call : alongside_) {
            engine_.commands().enqueue(call);
        }
        const auto call = std::make_shared<CommandCall>(std::move(words));
        QueryMachine machine(engine_.config().unreachableAfter);
        const auto ec = ThreadCalls::query(engine_, call, machine);
        const TimePoint until = ec ? BootClock::now() : BootClock::now() + engine_.config().commandTimeout;
        for (const auto& other : alongside_) {
            const Outcome outcome = engine_.commands().await(*other, until);
            answers_.push_back(outcome.replied ? other->reply : unanswered());
        }
        reply = call->reply;
        return ec;
    }

    [[nodiscard]] const Reply& answer(std::size_t i) const { return answers_.at(i); }

private:
    static Reply unanswered()
    {
        Reply reply;
        reply.kind = Reply::Kind::error;
        return reply;
    }

    Engine& engine_;
    std::vector<std::shared_ptr<CommandCall>> alongside_;
    std::vector<Reply> answers_;
};

/// What only this process knows of its own holds.
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
    engine.start();
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
    found.mode = second.answer(0);
    found.timeToLive = second.answer(1);
    for (const Reply* needed : {&found.mode, &found.timeToLive}) {
        if (needed->isError()) {
            ec = needed->text.empty() ? Reason(Errc::unreachable) : classify(needed->text).error;
            return std::nullopt;
        }
    }
    auto report = isCrowd ? reportOfCrowd(name, found) : reportOf(name, found);
    if (report) {
        LockSurroundings around;
        around.hasToken = numberIn(first.answer(0)).value_or(0) > 0;
        around.queued = numberIn(first.answer(1));
        const auto& listeners = first.answer(2).elements;
        around.listeners = listeners.size() == 2 ? numberIn(listeners[1]) : std::nullopt;
        addSurroundings(*report, around);
        placeOwn(*report, engine);
    }
    return report;
}

} // namespace redislock::detail
