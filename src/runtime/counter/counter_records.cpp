// Answers that Redis keeps, so that a request that is sent twice counts once: their names, and their end.
#include "redislock/detail/protocol/command.hpp"
#include "redislock/detail/protocol/key_schema.hpp"
#include "runtime/counter/counter_flow.hpp"
#include "runtime/engine/engine.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace redislock::detail {

namespace {

std::atomic<std::uint64_t> lastRequest{0};

} // namespace

/// Deletes records, of one name. Whatever becomes of it: they have a time to live.
class NamedCounter::Forgetting final : public Call {
public:
    /// Expects the engine's mutex.
    Forgetting(Engine& engine, std::vector<std::string> records) : records_(std::move(records)), underway_(engine)
    {
        mode = Mode::detached;
    }

    void encode(std::string& out, Form /*by*/) const override
    {
        appendHeader(out, '*', 1 + records_.size());
        appendArgument(out, std::string_view("DEL"));
        for (const auto& record : records_) {
            appendArgument(out, std::string_view(record));
        }
    }
    void finished() noexcept override { underway_.reset(); }

private:
    const std::vector<std::string> records_;
    std::optional<Underway> underway_;
};

std::string NamedCounter::newRecord() const
{
    const auto number = lastRequest.fetch_add(1, std::memory_order_relaxed) + 1;
    return requestKey(name, engine->id() + ":" + std::to_string(number));
}

std::string NamedCounter::recordTime() const
{
    return std::to_string((leastRecordTime + 2 * engine->config().unreachableAfter).count());
}

Recorded NamedCounter::recorded(std::size_t others)
{
    Recorded made{.record = newRecord()};
    if (!isForked()) {
        const Lock lock(engine->mutex_);
        if (!engine->closing_) {
            made.underway = std::make_shared<Underway>(*engine);
            engine->records_.take(name, others, made.taken);
        }
    }
    return made;
}

/// Nobody asks for these any more: their answers have arrived, and no other copies of the requests are under way. Empty ones are
/// none.
void NamedCounter::settle(const std::vector<std::string>& records) noexcept
{
    try {
        const Lock lock(engine->mutex_);
        for (const auto& record : records) {
            if (!record.empty()) {
                engine->records_.add(name, record);
            }
        }
        if (engine->records_.isFull() || engine->closing_) { // at the end no other request takes them along
            forgetRecords(*engine);
        }
    } catch (...) { // out of memory: they end with their time to live
        return;
    }
}

/// Deletes the records for which no request has come, if there is a connection for that. Expects the engine's mutex.
void NamedCounter::forgetRecords(Engine& engine)
{
    std::vector<std::shared_ptr<Forgetting>> calls;
    for (auto& records : engine.records_.takeAll()) {
        calls.push_back(std::make_shared<Forgetting>(engine, std::move(records)));
    }
    if (calls.empty()) {
        return;
    }
    engine.post([&engine, calls = std::move(calls)]() mutable {
        auto& renewals = engine.background_->renewals;
        const bool byCommands = engine.commands_->isConnected();
        if (byCommands || renewals.isConnected()) {
            for (auto& call : calls) {
                byCommands ? (void)engine.commands_->enqueue(std::move(call)) : renewals.enqueue(std::move(call));
            }
            byCommands ? engine.commands_->flush() : renewals.flush();
        }
        calls.clear();
    });
}

} // namespace redislock::detail
