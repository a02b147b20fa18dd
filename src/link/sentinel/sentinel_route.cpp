#include "link/sentinel/sentinel_route.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

bool SentinelRoute::Rank::isBelow(const Rank& other) const noexcept
{
    if (epoch != 0 && other.epoch != 0 && epoch != other.epoch) {
        return epoch < other.epoch;
    }
    return newAt != other.newAt ? newAt < other.newAt : votes < other.votes;
}

std::size_t SentinelRoute::add(const Endpoint& at, bool isConfigured)
{
    sentinels_.push_back({.at = at, .isConfigured = isConfigured});
    return sentinels_.size() - 1;
}

// --- What happens ----------------------------------------------------------------------------------------------------

void SentinelRoute::told(std::size_t which, const Word& word, TimePoint now)
{
    Sentinel& sentinel = sentinels_[which];
    const TimePoint askedAt = std::exchange(sentinel.askedAt, TimePoint::max());
    sentinel.wasAsked = true;
    if (askedAt <= sentinel.eventAt) { // the answer may be older than the event
        sentinel.isDue = true;
        return;
    }
    if (word.epoch > sentinel.greatest) {
        sentinel.greatest = word.epoch;
        sentinel.newAt = now;
    } else if (sentinel.word && sentinel.word->master != word.master) {
        sentinel.newAt = TimePoint::min();
    }
    sentinel.word = word;
    list();
    judge(now);
}

void SentinelRoute::silent(std::size_t which, TimePoint now)
{
    Sentinel& sentinel = sentinels_[which];
    sentinel.askedAt = TimePoint::max();
    sentinel.wasAsked = true;
    sentinel.word.reset();
    judge(now);
}

void SentinelRoute::search()
{
    if (!isHopeless()) {
        return; // they are being asked
    }
    for (auto& each : sentinels_) {
        each.isDue = each.isListed;
        each.wasAsked = !each.isListed;
    }
}

void SentinelRoute::switched(std::size_t which, const Endpoint& master, TimePoint now)
{
    Sentinel& sentinel = sentinels_[which];
    Word word = sentinel.word.value_or(Word{});
    word.master = master;
    word.epoch = 0;
    sentinel.word = std::move(word);
    sentinel.eventAt = sentinel.newAt = now;
    sentinel.isDue = true;
    hurry(now); // the others may tell the epoch
    judge(now);
}

void SentinelRoute::probed(const Endpoint& at, bool isMaster, TimePoint now)
{
    if (Candidate* const probed = candidate(at)) {
        probed->isAsked = false;
        probed->isMaster = isMaster;
        probed->again = now + (++probed->tries < hastyProbes ? askAgainAfter : askOneAfter);
        foundAt_ = isMaster ? std::min(foundAt_, now) : foundAt_;
    }
    judge(now);
}

void SentinelRoute::tried(const Endpoint& at, bool isUsable, TimePoint now)
{
    if (at == master_) {
        isReached_ = isUsable;
        if (!isUsable) {
            hurry(now);
        }
        judge(now);
    }
}

void SentinelRoute::timeIsOver(TimePoint now)
{
    if (now >= askAt_) {
        const bool asksAll = state() != State::settled;
        for (std::size_t i = 0; i < sentinels_.size(); ++i) {
            const auto which = (next_ + i) % sentinels_.size();
            Sentinel& sentinel = sentinels_[which];
            if (!sentinel.isListed || sentinel.askedAt != TimePoint::max()) {
                continue;
            }
            sentinel.isDue = true;
            if (!asksAll) {
                next_ = which + 1;
                break;
            }
        }
        askAt_ = now + (asksAll ? askAgainAfter : askOneAfter);
    }
    judge(now);
}

// --- What follows ----------------------------------------------------------------------------------------------------

/// Which Sentinels count: those that were configured, and those that others know. Where no other one answers, nobody
/// says that one is gone.
void SentinelRoute::list()
{
    std::vector<Endpoint> known;
    std::vector<Endpoint> themselves;
    for (const auto& each : sentinels_) {
        if (each.word) {
            known.insert(known.end(), each.word->others.begin(), each.word->others.end());
        }
        if (each.word && each.isConfigured) { // by a name, perhaps
            themselves.push_back(each.word->itself);
        }
    }
    const auto isIn = [](const std::vector<Endpoint>& all, const Endpoint& at) {
        return std::ranges::find(all, at) != all.end();
    };
    for (const auto& at : known) {
        if (std::ranges::find(sentinels_, at, &Sentinel::at) == sentinels_.end() && !isIn(themselves, at)) {
            sentinels_[add(at, false)].isDue = true;
        }
    }
    for (auto& each : sentinels_) {
        const bool isKnown = isIn(known, each.at) && !isIn(themselves, each.at);
        const bool isOnlyOne = std::ranges::all_of(
            sentinels_, [&](const Sentinel& other) { return &other == &each || !other.word.has_value(); });
        each.isListed = each.isConfigured || isKnown || isOnlyOne;
        if (!each.isListed) {
            each.word.reset();
            each.wasAsked = true;
            each.askedAt = TimePoint::max(); // its connections end, and with them the question
        }
    }
}

/// After an event the epoch is unknown until the Sentinel that published it tells it: others may name the same server
/// for an earlier fail-over.
SentinelRoute::Rank SentinelRoute::rankOf(const Endpoint& at) const
{
    Rank rank;
    bool isNews = false;
    for (const auto& each : sentinels_) {
        if (each.word && each.word->master == at) {
            isNews = isNews || (each.word->epoch == 0 && each.newAt != TimePoint::min());
            rank.epoch = std::max(rank.epoch, each.word->epoch);
            rank.newAt = std::max(rank.newAt, each.newAt);
            ++rank.votes;
        }
    }
    rank.epoch = isNews ? 0 : rank.epoch;
    return rank;
}

/// Whether a server, if it is a master, is to take the place of the one in use.
bool SentinelRoute::isBetter(const Endpoint& at) const
{
    if (!master_ || at == *master_) {
        return !master_;
    }
    const Rank other = rankOf(at);
    Rank own = rank_;
    own.votes = rankOf(*master_).votes;
    if (own.isBelow(other)) {
        return true;
    }
    const bool isEarlier = other.epoch != 0 && own.epoch != 0 && other.epoch < own.epoch;
    const bool isForgotten = own.votes == 0 && 2 * other.votes > listed();
    return !isEarlier && (isForgotten || (!isReached_ && other.votes >= own.votes));
}

/// Looks which servers are named that may be better than the one in use.
void SentinelRoute::findCandidates()
{
    for (const auto& each : sentinels_) {
        if (each.word && each.word->master && isBetter(*each.word->master) && !candidate(*each.word->master)) {
            candidates_.push_back({.at = *each.word->master});
        }
    }
    std::erase_if(candidates_, [&](const Candidate& each) {
        return !each.isAsked && (rankOf(each.at).votes == 0 || !isBetter(each.at));
    });
}

void SentinelRoute::judge(TimePoint now)
{
    judgedAt_ = now;
    if (master_) {
        const Rank known = rankOf(*master_);
        rank_.epoch = known.epoch > floor_ ? std::max(rank_.epoch, known.epoch) : rank_.epoch;
        rank_.newAt = std::max(rank_.newAt, known.newAt);
    }
    findCandidates();
    const Candidate* best = nullptr;
    for (const auto& each : candidates_) {
        const bool isGood = each.isMaster && rankOf(each.at).votes > 0 && isBetter(each.at);
        if (isGood && now >= judgedFrom(each) && (best == nullptr || rankOf(best->at).isBelow(rankOf(each.at)))) {
            best = &each;
        }
    }
    const bool mayBeOutdone =
        best != nullptr && std::ranges::any_of(candidates_, [&](const Candidate& each) {
            return each.tries == 0 && rankOf(best->at).isBelow(rankOf(each.at)); // it is being asked
        });
    const bool isDecided = (isWholeRound() && !mayBeOutdone) || now >= saturatingAdd(foundAt_, patience);
    if (best != nullptr && (master_ || isDecided)) {
        master_ = best->at;
        floor_ = std::max(floor_, rank_.epoch);
        rank_ = rankOf(best->at);
        isReached_ = true;
        hurry(now + askAgainAfter);
        judge(now); // the others may not be better than this one
    }
}

/// From when on a server that is a master may be taken. An event does not tell the epoch: it may be late, and of an
/// earlier fail-over than the one that is known.
TimePoint SentinelRoute::judgedFrom(const Candidate& candidate) const
{
    const Rank rank = rankOf(candidate.at);
    return rank_.epoch != 0 && rank.epoch == 0 ? saturatingAdd(rank.newAt, patience) : TimePoint::min();
}

bool SentinelRoute::isWholeRound() const noexcept
{
    return std::ranges::all_of(sentinels_, &Sentinel::wasAsked);
}

bool SentinelRoute::isNamed() const noexcept
{
    return std::ranges::any_of(sentinels_, [](const Sentinel& each) { return each.word && each.word->master; });
}

bool SentinelRoute::isAnswered() const noexcept
{
    return std::ranges::any_of(sentinels_, [](const Sentinel& each) { return each.word.has_value(); });
}

SentinelRoute::Candidate* SentinelRoute::candidate(const Endpoint& at) noexcept
{
    const auto found = std::ranges::find(candidates_, at, &Candidate::at);
    return found == candidates_.end() ? nullptr : &*found;
}

// --- What is to be done ----------------------------------------------------------------------------------------------

SentinelRoute::State SentinelRoute::state() const noexcept
{
    if (!master_) {
        return State::searching;
    }
    const bool isOutdone =
        std::ranges::any_of(candidates_, [](const Candidate& each) { return each.tries < hastyProbes; });
    return isReached_ && !isOutdone ? State::settled : State::doubting;
}

std::optional<std::size_t> SentinelRoute::takeQuestion(TimePoint now)
{
    const auto found = std::ranges::find_if(sentinels_, [](const Sentinel& each) {
        return each.isDue && each.isListed && each.askedAt == TimePoint::max();
    });
    if (found == sentinels_.end()) {
        return std::nullopt;
    }
    found->isDue = false;
    found->askedAt = now;
    return static_cast<std::size_t>(found - sentinels_.begin());
}

std::optional<Endpoint> SentinelRoute::takeProbe(TimePoint now)
{
    const auto found = std::ranges::find_if(
        candidates_, [now](const Candidate& each) { return !each.isAsked && !each.isMaster && now >= each.again; });
    if (found == candidates_.end()) {
        return std::nullopt;
    }
    found->isAsked = true;
    return found->at;
}

TimePoint SentinelRoute::dueAt() const
{
    TimePoint due = askAt_;
    const auto next = [&](TimePoint when) { due = when > judgedAt_ ? std::min(due, when) : due; };
    for (const auto& each : candidates_) {
        if (!each.isAsked) {
            each.isMaster ? next(judgedFrom(each)) : void(due = std::min(due, each.again));
        }
    }
    if (!master_) {
        next(saturatingAdd(foundAt_, patience));
    }
    return due;
}

} // namespace redislock::detail
