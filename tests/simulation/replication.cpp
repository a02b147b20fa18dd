#include "simulation/replication.hpp"

#include "simulation/one_of.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using namespace std::chrono_literals;

Replication::Replication(Scheduler& scheduler, Random& chance, ModelServer& master, std::size_t replicas, Links links)
    : scheduler_(scheduler),
      chance_(chance),
      master_(master),
      links_(std::move(links)),
      replicas_(replicas),
      masterNode_(replicas)
{
    for (std::size_t i = 0; i < replicas; ++i) {
        replicas_[i].node = i;
        replicas_[i].lag = oneOf<VirtualTime>(chance_, {300us, 3ms, 40ms});
    }
    master_.wrote = [this](LinkId by) { wrote(by); };
}

VirtualTime Replication::within(VirtualTime least, VirtualTime most)
{
    return least + VirtualTime(static_cast<std::int64_t>(chance_.unit() * static_cast<double>((most - least).count())));
}

// --- What replicas have ----------------------------------------------------------------------------------------------

void Replication::wrote(LinkId by)
{
    written_[by] = ++offset_;
    const auto state = std::make_shared<const State>(master_.keyspace().keys());
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
        Replica& replica = replicas_[i];
        if (replica.isSynced) {
            const auto arrival = scheduler_.now() + within(50us, 2 * replica.lag);
            replica.lastArrival = std::max({arrival, replica.lastArrival, replica.stoppedUntil});
            scheduler_.at(replica.lastArrival,
                          [this, i, life = replica.life, offset = offset_, state] { apply(i, life, offset, state); });
        }
    }
}

void Replication::apply(std::size_t index, std::uint64_t life, std::uint64_t offset, std::shared_ptr<const State> state)
{
    Replica& replica = replicas_[index];
    if (life != replica.life || offset <= replica.applied) {
        return;
    }
    if (scheduler_.now() < replica.stoppedUntil) {
        return scheduler_.at(replica.stoppedUntil,
                             [this, index, life, offset, state] { apply(index, life, offset, state); });
    }
    replica.applied = offset;
    replica.state = std::move(state);
    links_.applied(replica.node, *replica.state);
    judgeWaits();
}

void Replication::copy(std::size_t index)
{
    Replica& replica = replicas_[index];
    ++replica.life;
    replica.isSynced = true;
    replica.applied = offset_;
    replica.state = std::make_shared<const State>(master_.keyspace().keys());
    replica.lastArrival = scheduler_.now();
    links_.applied(replica.node, *replica.state);
    judgeWaits();
}

void Replication::stop(std::size_t index, VirtualTime until)
{
    replicas_[index].stoppedUntil = std::max(replicas_[index].stoppedUntil, until);
}

void Replication::lose(std::size_t index, VirtualTime until)
{
    Replica& replica = replicas_[index];
    replica.isSynced = false;
    scheduler_.at(until, [this, index, life = ++replica.life] {
        if (life == replicas_[index].life) {
            copy(index);
        }
    });
}

void Replication::promote(std::size_t index)
{
    offset_ = replicas_[index].applied;
    master_.keyspace().load(*replicas_[index].state);
    written_.clear();
    for (auto& each : waiting_) {
        each.atFormer = true;
    }
    std::swap(masterNode_, replicas_[index].node);
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
        lose(i, i == index ? VirtualTime::max() : scheduler_.now() + within(5ms, 800ms));
    }
}

// --- WAIT ------------------------------------------------------------------------------------------------------------

std::int64_t Replication::howManyHave(const Waiting& waiting) const
{
    return waiting.atFormer ? 0 : std::ranges::count_if(replicas_, [&](const Replica& each) {
        return each.isSynced && each.applied >= waiting.offset;
    });
}

/// A server looks ten times a second whether the time of a WAIT is over.
void Replication::wait(LinkId link, std::int64_t replicas, VirtualTime time, bool atFormer)
{
    const auto written = written_.find(link);
    waiting_.push_back({++lastWait_, link, replicas, written == written_.end() ? 0 : written->second, atFormer});
    scheduler_.at(scheduler_.now() + time + within(8ms, 100ms), [this, number = lastWait_] {
        const auto found = std::ranges::find(waiting_, number, &Waiting::number);
        if (found != waiting_.end()) {
            const Waiting over = *found;
            waiting_.erase(found);
            links_.answerWait(over.link, howManyHave(over));
        }
    });
    judgeWaits();
}

void Replication::judgeWaits()
{
    const auto isOver = [this](const Waiting& each) { return howManyHave(each) >= each.replicas; };
    for (auto over = std::ranges::find_if(waiting_, isOver); over != waiting_.end();
         over = std::ranges::find_if(waiting_, isOver)) {
        const Waiting waiting = *over;
        waiting_.erase(over);
        links_.answerWait(waiting.link, howManyHave(waiting));
    }
}

} // namespace redislock::simulation
