// Who has a lock, in two round trips on the command connection.
#include "client/drive.hpp"
#include "client/lock/thread_calls.hpp"
#include "core/lock_fields.hpp"
#include "core/operation/query_flow.hpp"
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

/// A question with which other requests go along, in one packet. An error reply to one of these is an answer. Asked
/// again if a connection ended before all requests had their answers, or if one was refused for now.
class QueryAlong final : public Operation {
public:
    /// @param slot of all keys and channels
    QueryAlong(Core& core, Slot slot, Words words, std::vector<Words> alongside)
        : Operation(core, nullptr), slot_(slot), words_(std::move(words)), alongside_(std::move(alongside))
    {
    }

    WaitStep look() override { return query_ ? follow(query_->look()) : begin(); }
    WaitStep answered(const Outcome& outcome) override { return follow(query_->answered(outcome)); }
    WaitStep cancel() override { return query_ ? query_->cancel() : WaitStep{}; }
    [[nodiscard]] Call& call() const noexcept override { return query_->call(); }

    // only when done
    [[nodiscard]] std::error_code error() const noexcept { return error_; }
    [[nodiscard]] const Reply& reply() const noexcept { return query_->reply(); }
    /// The answer to one of the other requests.
    [[nodiscard]] const Reply& answer(std::size_t which) const noexcept { return others_[which]->reply; }

private:
    static bool isRefusedForNow(const std::shared_ptr<CommandCall>& other) noexcept
    {
        return other->reply.isError() && classify(other->reply.text).failure == Failure::refused;
    }

    WaitStep begin()
    {
        ++tries_;
        others_.clear();
        for (const auto& each : alongside_) {
            others_.push_back(std::make_shared<CommandCall>(each, slot_));
            (void)submit(others_.back());
        }
        query_.emplace(core_, std::make_shared<CommandCall>(words_, slot_), nullptr);
        return follow(query_->look());
    }

    WaitStep follow(const WaitStep& next)
    {
        constexpr int most = 3;
        if (next.kind != WaitStep::Kind::done) {
            return next;
        }
        error_ = query_->error();
        bool isWhole = true;
        for (const auto& other : others_) { // answered before, if at all
            isWhole = isWhole && !other->pending && other->outcome.replied;
            if (other->pending) {
                (void)core_.port.giveUp(Lane::commands, *other);
            }
        }
        if (error_ || (isWhole && std::ranges::none_of(others_, isRefusedForNow))) {
            return {};
        }
        if (tries_ < most) {
            return begin();
        }
        error_ = isWhole ? std::error_code() : Cause::connectionLost;
        return {};
    }

    const Slot slot_;
    const Words words_;
    const std::vector<Words> alongside_;
    std::vector<std::shared_ptr<CommandCall>> others_;
    std::optional<QueryFlow> query_;
    int tries_ = 0;
    std::error_code error_;
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
    auto lock = engine.lock();
    const bool isSharded = engine.core(lock).channelMark == ">";
    QueryAlong first(engine.core(lock), named.slot, {"HLEN", name},
                     {{"EXISTS", prefixed(tokenPrefix, name)},
                      {"LLEN", prefixed(queuePrefix, name)},
                      {"PUBSUB", isSharded ? "SHARDNUMSUB" : "NUMSUB",
                       prefixed(isReadWrite ? readWriteChannelPrefix : lockChannelPrefix, name)}});
    drive(engine, lock, first);
    ec = first.error();
    const auto fields = numberIn(first.reply()).value_or(0);
    if (ec || fields == 0) {
        return std::nullopt;
    }
    const bool isCrowd = fields > maxFields;
    QueryAlong second(engine.core(lock), named.slot,
                      isCrowd ? Words{"HLEN", name} : Words{"HSCAN", name, "0", "COUNT", "300"},
                      {{"HGET", name, "mode"}, {"PTTL", name}});
    drive(engine, lock, second);
    lock.unlock();
    ec = second.error();
    if (ec) {
        return std::nullopt;
    }
    const LockFields found{.mode = second.answer(0), .page = second.reply(), .timeToLive = second.answer(1)};
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
