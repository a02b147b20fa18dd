#include "core/counter/counters.hpp"

#include "core/core.hpp"
#include "core/counter/counter.hpp"
#include "wire/command.hpp"

#include <new>
#include <optional>
#include <string_view>
#include <utility>

namespace redislock::detail {

namespace {

std::string keyOf(const NamedCounter& counter)
{
    return static_cast<char>(counter.kind) + counter.name;
}

} // namespace

std::shared_ptr<NamedCounter> Counters::knownOrAdd(NamedCounter& fresh)
{
    auto& entry = names_[keyOf(fresh)];
    if (entry != nullptr) {
        if (auto known = entry->weak_from_this().lock()) { // null while its destructor waits for the mutex
            return known;
        }
    }
    entry = &fresh;
    return nullptr;
}

void Counters::forget(NamedCounter& counter) noexcept
{
    const auto found = names_.find(keyOf(counter));
    if (found != names_.end() && found->second == &counter) {
        names_.erase(found);
    }
}

void Counters::close()
{
    try {
        forgetRecords();
    } catch (const std::bad_alloc&) { // records have a time to live
    }
    for (const auto& [key, counter] : names_) {
        counter->end();
    }
}

/// Deletes records of one name. It may fail: they have a time to live, too.
class Counters::Forgetting final : public Call {
public:
    Forgetting(Core& core, std::vector<std::string> records) : records_(std::move(records)), underway_(core)
    {
        mode = Mode::detached;
    }

    void encode(std::string& out, Form /*by*/) override
    {
        appendHeader(out, '*', 1 + records_.size());
        appendArgument(out, std::string_view("DEL"));
        for (const auto& record : records_) {
            appendArgument(out, std::string_view(record));
        }
    }
    [[nodiscard]] Slot slot() const noexcept override { return slotOf(records_.front()); }
    void finished() noexcept override { underway_.reset(); }

private:
    const std::vector<std::string> records_;
    std::optional<Underway> underway_;
};

void Counters::forgetRecords()
{
    std::vector<std::shared_ptr<Call>> calls;
    for (auto& each : records.takeAll()) {
        calls.push_back(std::make_shared<Forgetting>(core_, std::move(each)));
    }
    if (!calls.empty()) {
        core_.port.submitIfConnected(std::move(calls));
    }
}

} // namespace redislock::detail
