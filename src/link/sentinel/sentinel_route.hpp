/// @file
/// Which server is the master.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/endpoint.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace redislock::detail {

/// Which server is the master, by what Sentinels say, and by what the servers say that they name. Pure: no I/O, no
/// clock.
///
/// A server is used when it calls itself master; of several that do, the one that knows of the later fail-over: the
/// greater configuration epoch, where Sentinels tell it, else the newest event, else the one that more Sentinels name.
/// So a Sentinel that is late, or that lies, changes nothing, and an old master that does not know of its end is left
/// though it still answers.
class SentinelRoute {
public:
    /// What a Sentinel answers.
    struct Word {
        std::optional<Endpoint> master; ///< nothing: it watches no master of that name
        std::uint64_t epoch = 0;        ///< of the last fail-over; 0: not told
        std::vector<Endpoint> others{}; ///< the Sentinels that it knows
        Endpoint itself{};              ///< the address by which it was reached
    };

    enum class State : std::uint8_t {
        searching, ///< no master has been found yet
        settled,   ///< the master in use can be reached, and no Sentinel names a later one
        doubting,  ///< it cannot, or one does
    };

    /// While it is not settled, everybody is asked so often; otherwise one Sentinel each second.
    static constexpr std::chrono::milliseconds askAgainAfter{100};
    static constexpr std::chrono::milliseconds askOneAfter{1000};
    /// How long the first master that is found waits for what other Sentinels say, and an event for its epoch.
    static constexpr std::chrono::milliseconds patience{100};

    // the Sentinels
    /// @return its number
    std::size_t add(const Endpoint& at, bool isConfigured);
    [[nodiscard]] std::size_t count() const noexcept { return sentinels_.size(); }
    [[nodiscard]] const Endpoint& at(std::size_t which) const { return sentinels_[which].at; }
    /// Whether it was configured, or another one that is listed knows it.
    [[nodiscard]] bool isListed(std::size_t which) const { return sentinels_[which].isListed; }
    [[nodiscard]] std::size_t listed() const noexcept
    {
        return static_cast<std::size_t>(std::ranges::count(sentinels_, true, &Sentinel::isListed));
    }

    // what happens
    /// A Sentinel has answered.
    void told(std::size_t which, const Word& word, TimePoint now);
    /// A Sentinel could not be asked.
    void silent(std::size_t which, TimePoint now);
    /// There was no memory for the answer of a Sentinel: it is asked once more.
    void dropped(std::size_t which) noexcept { sentinels_[which].askedAt = TimePoint::max(); }
    /// A Sentinel is to be asked: what it published may have been missed.
    void missed(std::size_t which) { sentinels_[which].isDue = true; }
    /// A Sentinel has published that the master is another one.
    void switched(std::size_t which, const Endpoint& master, TimePoint now);
    /// A server was asked what it is.
    void probed(const Endpoint& at, bool isMaster, TimePoint now);
    /// A connection to the master was made, or could not be made.
    void tried(const Endpoint& at, bool isUsable, TimePoint now);
    /// Somebody needs the master: asks all once more, where none has been found.
    void search();
    /// The time of dueAt() has come.
    void timeIsOver(TimePoint now);

    // what is to be done
    [[nodiscard]] State state() const noexcept;
    /// The server to use; null: not known.
    [[nodiscard]] const Endpoint* master() const noexcept { return master_ ? &*master_ : nullptr; }
    /// Takes a Sentinel that is to be asked now.
    std::optional<std::size_t> takeQuestion(TimePoint now);
    /// Takes a server that is to be asked now what it is.
    std::optional<Endpoint> takeProbe(TimePoint now);
    [[nodiscard]] TimePoint dueAt() const;
    /// Whether a Sentinel names a master.
    [[nodiscard]] bool isNamed() const noexcept;
    /// Whether each Sentinel was asked, and none names a master.
    [[nodiscard]] bool isHopeless() const noexcept { return !isNamed() && isWholeRound(); }
    /// Whether a Sentinel answered, whatever it said.
    [[nodiscard]] bool isAnswered() const noexcept;

private:
    /// Tries for which a server that is named, and is no master, is asked without a long pause.
    static constexpr int hastyProbes = 50;

    struct Sentinel {
        Endpoint at;
        bool isConfigured = true;
        bool isListed = true;
        bool isDue = false;                   ///< to be asked
        bool wasAsked = false;                ///< and has answered, or could not be asked
        TimePoint askedAt = TimePoint::max(); ///< the answer is due; max(): it is not
        TimePoint eventAt = TimePoint::min(); ///< when it last published who the master is
        TimePoint newAt = TimePoint::min();   ///< when it did, or when it first told so great an epoch
        std::uint64_t greatest = 0;           ///< epoch that it ever told
        std::optional<Word> word{};
    };
    /// How good the reasons are to take a server for the master.
    struct Rank {
        std::uint64_t epoch = 0;
        TimePoint newAt = TimePoint::min();
        std::size_t votes = 0;

        [[nodiscard]] bool isBelow(const Rank& other) const noexcept;
    };
    /// A server that is named, and may be a better one.
    struct Candidate {
        Endpoint at;
        bool isAsked = false;
        bool isMaster = false;
        int tries = 0;
        TimePoint again = TimePoint::min(); ///< when it is asked next
    };

    [[nodiscard]] Rank rankOf(const Endpoint& at) const;
    [[nodiscard]] bool isBetter(const Endpoint& at) const;
    [[nodiscard]] TimePoint judgedFrom(const Candidate& candidate) const;
    [[nodiscard]] bool isWholeRound() const noexcept;
    Candidate* candidate(const Endpoint& at) noexcept;
    void list();
    void findCandidates();
    void judge(TimePoint now);
    void hurry(TimePoint now) noexcept { askAt_ = std::min(askAt_, now); }

    std::vector<Sentinel> sentinels_;
    std::vector<Candidate> candidates_;
    std::optional<Endpoint> master_;
    Rank rank_;               ///< of the master: the best that was known of it
    std::uint64_t floor_ = 0; ///< the greatest epoch of an earlier master: what is told of this one must be greater
    bool isReached_ = false;  ///< the last connection to it was made
    TimePoint foundAt_ = TimePoint::max(); ///< while searching: when the first master answered
    TimePoint askAt_ = TimePoint::min();
    TimePoint judgedAt_ = TimePoint::min(); ///< the last time
    std::size_t next_ = 0;                  ///< the next to be asked alone
};

} // namespace redislock::detail
