#include "history/recorded_group.hpp"

#include <atomic>
#include <stdexcept>
#include <utility>

namespace redislock::test::history {
namespace {

GroupLock groupOf(const std::string& kind, const std::vector<RecordedMember>& members)
{
    std::vector<Lock> locks;
    for (const auto& member : members) {
        locks.push_back(member.client.get().getLock(member.name));
    }
    if (kind == "multi") {
        return MultiLock(std::move(locks));
    }
    if (kind == "red") {
        return RedLock(std::move(locks));
    }
    throw std::invalid_argument("no kind of group: " + kind);
}

/// A new word each time, which is not the holder of any member.
std::string newHolder(const std::string& client)
{
    static std::atomic<int> last{0};
    return client + ":group-" + std::to_string(++last);
}

} // namespace

RecordedGroup::RecordedGroup(std::shared_ptr<Recorder> recorder, const std::string& kind, const std::string& name,
                             const std::vector<RecordedMember>& members, int owner)
    : recorder_(std::move(recorder)),
      client_(members.at(0).client.get().id()),
      name_(name),
      log_(recorder_, members.front().client, kind, name, owner),
      lock_(groupOf(kind, members))
{
    const auto needed = kind == "multi" ? members.size() : members.size() / 2 + 1;
    for (const auto& member : members) {
        recorder_->write(
            {.lock = name_, .op = Op::member, .count = static_cast<std::int64_t>(needed), .error = member.name});
    }
}

bool RecordedGroup::tryLock(Wait wait, Lease lease)
{
    log_.lockBegins(wait, lease);
    std::error_code ec;
    const bool got = lock_.tryLock(wait, lease, ec);
    got ? taken([this] { return belief(); }, lock_.stopToken()) : log_.notLocked(ec);
    return got;
}

Unlocked RecordedGroup::unlock()
{
    log_.unlockBegins();
    std::error_code ec;
    const auto how = lock_.unlock(ec);
    log_.unlocked(how, ec, 0);
    return how;
}

bool RecordedGroup::sample()
{
    return log_.sample([this] { return belief(); });
}

Belief RecordedGroup::belief() const
{
    const auto validFor = lock_.validFor();
    return {validFor, validFor > validFor.zero() ? 1 : 0};
}

void RecordedGroup::taken(const AskBelief& ask, const std::stop_token& lost)
{
    const auto holder = newHolder(client_);
    log_.locked(ask, {.holder = holder});
    const Record loss{.client = client_, .holder = holder, .lock = name_, .op = Op::lost};
    loss_ = std::make_unique<std::stop_callback<std::function<void()>>>(
        lost, [recorder = recorder_, loss] { recorder->write(loss); });
}

} // namespace redislock::test::history
