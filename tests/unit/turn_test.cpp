#include "core/share/turn.hpp"

#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace redislock::test {
namespace {

using detail::Turn;
using namespace std::chrono_literals;

constexpr auto span = 700us;

/// A hold begins that was asked for just before.
void grant(Turn& turn, TimePoint now)
{
    turn.granted(now, now);
}

/// A hold ends; see Turn::told().
void tell(Turn& turn, TimePoint now, bool follows, bool listens)
{
    Random random(1);
    turn.releasePublished(now, follows, listens, random);
}

/// A client that was granted the lock at 0, and has seen @p others other clients listen.
Turn turnBeside(std::int64_t others)
{
    Turn turn(span);
    grant(turn, at(-2ms));
    tell(turn, at(-1ms), true, false);
    turn.othersListen(others, at(-1ms));
    grant(turn, at(0us));
    return turn;
}

TEST(Turn, IsQuietUntilItIsOver)
{
    Turn turn = turnBeside(1);
    EXPECT_TRUE(turn.mayFollow(at(699us)));
    EXPECT_TRUE(turn.isQuiet(at(699us)));
    EXPECT_FALSE(turn.mayFollow(at(700us)));
    EXPECT_FALSE(turn.isQuiet(at(700us)));
}

TEST(Turn, GoesOnWhereNobodyElseListensButIsToldNowAndThen)
{
    Turn turn = turnBeside(0);
    EXPECT_TRUE(turn.mayFollow(at(5ms)));
    EXPECT_FALSE(turn.isQuiet(at(5ms)));
    tell(turn, at(5ms), true, false);
    EXPECT_EQ(turn.asideUntil(), TimePoint{});
    grant(turn, at(5ms));
    EXPECT_TRUE(turn.isQuiet(at(5ms)));
}

TEST(Turn, IsFollowedByAGapEvenIfNobodyIsKnownToListen)
{
    Turn turn = turnBeside(0);
    EXPECT_FALSE(turn.mayFollow(at(20ms)));
    tell(turn, at(20ms), false, false);
    EXPECT_FALSE(turn.isAside(at(20ms)));
    EXPECT_GT(turn.gapUntil(), at(20ms));
    EXPECT_EQ(turn.asideUntil(), turn.gapUntil());
}

TEST(Turn, WhoseEndNobodyCanHearIsNotSharedAfterARefusal)
{
    Turn turn(span, Turn::Audience::none);
    turn.refused(at(0us));
    grant(turn, at(1ms));
    EXPECT_TRUE(turn.mayFollow(at(1ms + span)));
    tell(turn, at(1ms + span), false, false);
    EXPECT_EQ(turn.asideUntil(), TimePoint{});
}

TEST(Turn, IsFollowedByTheTurnsOfThoseWhoListen)
{
    for (const auto others : {1, 3, 32, 1000}) {
        Turn turn = turnBeside(others);
        tell(turn, at(span), false, false);
        EXPECT_EQ(turn.asideUntil(), at(span + std::min(others, 32) * span + Turn::wakeUp)) << others;
    }
}

TEST(Turn, IsFollowedByAsManyTurnsAsTheServerSays)
{
    Turn turn = turnBeside(1);
    tell(turn, at(span), false, false);
    EXPECT_FALSE(turn.othersListen(2, at(800us)));
    EXPECT_EQ(turn.asideUntil(), at(3 * span + Turn::wakeUp));
    EXPECT_TRUE(turn.othersListen(0, at(900us)));
    EXPECT_EQ(turn.asideUntil(), TimePoint{});
}

TEST(Turn, LeavesTheLockToWhomTheFirstToldReleaseFinds)
{
    Turn turn = turnBeside(0);
    tell(turn, at(span), false, false);
    EXPECT_EQ(turn.asideUntil(), TimePoint{});
    turn.othersListen(1, at(800us));
    EXPECT_EQ(turn.asideUntil(), at(2 * span + Turn::wakeUp));
}

TEST(Turn, LearnsOfListenersWithoutStandingAsideWhereItHasGoneOn)
{
    Turn turn = turnBeside(0);
    tell(turn, at(1ms), false, false);
    grant(turn, at(1050us));
    turn.othersListen(1, at(1100us));
    EXPECT_EQ(turn.asideUntil(), TimePoint{});
    EXPECT_FALSE(turn.mayFollow(at(1750us)));
}

TEST(Turn, CountsWhatAThreadLocksAgainAtOnceAndNotWhatItLocksLater)
{
    const struct {
        const char* name;
        std::chrono::microseconds pause;
        bool isOver;
    } cases[] = {{"at once", 100us, true}, {"after a whole turn", 701us, false}};
    for (const auto& each : cases) {
        Turn turn = turnBeside(1);
        tell(turn, at(500us), false, false);
        EXPECT_EQ(turn.asideUntil(), TimePoint{}) << each.name;
        grant(turn, at(500us + each.pause));
        EXPECT_EQ(turn.mayFollow(at(500us + each.pause + 300us)), !each.isOver) << each.name;
    }
}

TEST(Turn, EndsWhereAnotherHasTheLock)
{
    Turn turn = turnBeside(1);
    turn.refused(at(100us));
    grant(turn, at(600us));
    EXPECT_TRUE(turn.mayFollow(at(1299us)));
    EXPECT_FALSE(turn.mayFollow(at(1300us)));
}

TEST(Turn, AssumesAListenerAfterARefusalThoughTheServerKnowsOfNone)
{
    Turn turn = turnBeside(0);
    turn.refused(at(0us));
    grant(turn, at(1ms));
    tell(turn, at(1ms + span), false, false);
    turn.othersListen(0, at(2ms));
    EXPECT_EQ(turn.asideUntil(), at(1ms + 2 * span + Turn::wakeUp));

    grant(turn, at(2s));
    tell(turn, at(3s), false, false);
    EXPECT_FALSE(turn.isAside(at(3s))) << "that was long ago";
}

TEST(Turn, LastsForTwoRoundTripsAtLeast)
{
    Turn turn = turnBeside(1);
    turn.answered(5ms);
    EXPECT_EQ(turn.span(), 10ms);
    turn.answered(200us);
    EXPECT_EQ(turn.span(), span);
    turn.answered(3s); // a single slow answer is chance
    EXPECT_LT(turn.span(), 1200us);
    for (int i = 0; i < 100; ++i) {
        turn.answered(5ms);
    }
    EXPECT_GT(turn.span(), 9ms);
}

TEST(Turn, AsideOfAClientThatFoundTheServerSlowIsCutByTheAnswerToItsRelease)
{
    Turn turn = turnBeside(3);
    turn.answered(40ms);
    tell(turn, at(1s), false, false);
    EXPECT_EQ(turn.asideUntil(), at(1s + 3 * (80ms + 80ms)));
    turn.answered(300us);
    EXPECT_TRUE(turn.othersListen(3, at(1s + 300us))) << "its waiter is to look again";
    EXPECT_EQ(turn.asideUntil(), at(1s + Turn::longest + 3 * 600us));
}

TEST(Turn, IsOverForAThreadThatLocksAgainAsSoonAsASlowServerAnswers)
{
    Turn turn = turnBeside(1);
    turn.answered(5ms);
    tell(turn, at(200us), false, false);
    grant(turn, at(10'400us)); // a release and an acquire later
    EXPECT_FALSE(turn.mayFollow(at(10'600us)));
}

TEST(Turn, IsFollowedByTheRoundTripsOfTheOthersToo)
{
    Turn turn = turnBeside(3);
    turn.answered(5ms);
    tell(turn, at(10ms), false, false);
    EXPECT_EQ(turn.asideUntil(), at(10ms + 3 * (10ms + 2 * 5ms)));
}

TEST(Turn, IsFollowedByNobodysWhereTheReleaseFoundNothingToEnd)
{
    Turn turn = turnBeside(3);
    tell(turn, at(1s), false, true);
    EXPECT_TRUE(turn.toldNobody(true)) << "its waiter is to look again";
    EXPECT_EQ(turn.asideUntil(), TimePoint{});
    EXPECT_FALSE(turn.toldNobody(false));
    tell(turn, at(1s), false, false);
    turn.messageHeard(at(1s)); // a message of another client: there is none of its own to come
    turn.messageHeard(at(1s));
    turn.messageHeard(at(1s));
    EXPECT_TRUE(turn.endsWithMessage(at(1s + 3 * span)));
}

/// An aside of a client with a waiter, ended by a grant. @param use what happens meanwhile @return the end of the aside
template <class Use>
TimePoint standAsideOnce(Turn& turn, TimePoint begin, const Use& use)
{
    tell(turn, begin, false, true);
    const TimePoint end = turn.asideUntil();
    EXPECT_GT(end, begin);
    turn.standsAside();
    turn.messageHeard(begin); // its own message
    use();
    grant(turn, end);
    return end;
}

bool isFollowedByAnAside(Turn turn, TimePoint end)
{
    tell(turn, end, false, false);
    return turn.isAside(end);
}

TEST(Turn, IsNotFollowedByAnotherAsideForAWhileWhereNobodyUsedTheLast)
{
    Turn turn = turnBeside(1);
    TimePoint begin = at(span);
    for (const int rest : {4, 20, 60, 180, 180}) {
        const TimePoint end = standAsideOnce(turn, begin, [] {});
        begin = end + rest * (end - begin);
        EXPECT_FALSE(isFollowedByAnAside(turn, begin - 1us));
        EXPECT_TRUE(isFollowedByAnAside(turn, begin));
    }
}

/// An aside for three others, of whom one used its turn. @return its end, from which on the client expects only one
TimePoint standAsideForOneOfThree(Turn& turn, TimePoint begin)
{
    return standAsideOnce(turn, begin, [&] { turn.messageHeard(begin + span); });
}

/// The turn that began at @p before is short, and the next begins at @p begin. @return the end of that one
TimePoint takeTurn(Turn& turn, TimePoint before, TimePoint begin)
{
    tell(turn, before, false, false);
    grant(turn, begin);
    return begin + span;
}

/// How long the client stands aside after a turn that begins now.
std::chrono::nanoseconds asideAfter(Turn turn, TimePoint begin)
{
    const TimePoint end = takeTurn(turn, begin - 1s, begin);
    tell(turn, end, false, false);
    return turn.asideUntil() - end;
}

TEST(Turn, IsFollowedByTheTurnsOfThoseWhoUsedTheirsForAWhile)
{
    Turn turn = turnBeside(3);
    TimePoint begin = at(span);
    for (const int rest : {4, 20, 60, 180, 180}) {
        const TimePoint end = standAsideForOneOfThree(turn, begin);
        const TimePoint over = end + rest * (end - begin);
        EXPECT_EQ(asideAfter(turn, end), span + Turn::wakeUp);
        EXPECT_EQ(asideAfter(turn, over - span - 1us), span + Turn::wakeUp);
        EXPECT_EQ(asideAfter(turn, over - span), 3 * span + Turn::wakeUp);
        begin = takeTurn(turn, end, over);
    }
}

TEST(Turn, IsFollowedByTheTurnOfWhoComesWhereOthersDidNotUseTheirs)
{
    Turn turn = turnBeside(3);
    const TimePoint end = standAsideForOneOfThree(turn, at(1ms));
    tell(turn, end + span, false, true);
    turn.othersListen(4, end + span);
    EXPECT_EQ(turn.asideUntil(), end + span + 2 * span + Turn::wakeUp);
    turn.othersListen(1, end + span);
    EXPECT_EQ(turn.asideUntil(), end + span + span + Turn::wakeUp) << "this one may be who used its turn";
}

/// A turn ends, others use their time, and the next one begins. @return its end
TimePoint passTurn(Turn& turn, TimePoint end, std::int64_t others)
{
    tell(turn, end, false, false);
    turn.othersListen(others, end);
    grant(turn, end + 1s);
    return end + 1s + span;
}

TEST(Turn, IsFollowedByTheTurnOfWhoComesAndGoesThoughItDidNotUseTheLast)
{
    const auto oneOfTwo = [](Turn& turn, TimePoint begin) {
        const TimePoint end = standAsideOnce(turn, begin, [&] { turn.messageHeard(begin + span); });
        return asideAfter(turn, end);
    };
    Turn turn = turnBeside(2);
    const TimePoint begin = passTurn(turn, at(span), 2);
    EXPECT_EQ(oneOfTwo(turn, begin), span + Turn::wakeUp) << "both listened always";

    turn = turnBeside(2);
    TimePoint end = passTurn(turn, passTurn(turn, at(span), 1), 2);
    EXPECT_EQ(oneOfTwo(turn, end), 2 * span + Turn::wakeUp) << "the second had gone, and came";
    for (int i = 0; i < 2 * Turn::remembered; ++i) {
        end = passTurn(turn, end, 2);
    }
    EXPECT_EQ(oneOfTwo(turn, end), span + Turn::wakeUp) << "it has not gone for long";
}

TEST(Turn, SaysNothingOfAnAsideForSomeOfTheListeners)
{
    Turn turn = turnBeside(3);
    const TimePoint end = standAsideForOneOfThree(turn, at(1ms));
    const TimePoint next = standAsideOnce(turn, end + span, [] {});
    EXPECT_FALSE(turn.mayFollow(next + span)) << "the others may have stood aside themselves";
}

TEST(Turn, LeavesNobodyOutForLongWhoWasLateOnce)
{
    Turn turn = turnBeside(3);
    TimePoint begin = at(span);
    for (int i = 0; i < 3; ++i) {
        const TimePoint end = standAsideForOneOfThree(turn, begin);
        begin = takeTurn(turn, end, end + 1s);
    }
    const TimePoint end = standAsideOnce(turn, begin, [] {});
    EXPECT_EQ(asideAfter(turn, end + 4 * (end - begin) - span), 3 * span + Turn::wakeUp);
}

TEST(Turn, TakesSilentListenersForUsersOnlyAfterSeveralAsidesThatWereUsedInFull)
{
    for (const int uses : {1, Turn::enoughUses - 1, Turn::enoughUses}) {
        SCOPED_TRACE(uses);
        Turn turn = turnBeside(3);
        TimePoint begin = at(span);
        for (int i = 0; i < 3; ++i) {
            begin = takeTurn(turn, standAsideForOneOfThree(turn, begin), begin + 1s);
        }
        for (int i = 0; i < uses; ++i) { // perhaps by the same client as the first turn
            const TimePoint end = standAsideOnce(turn, begin, [&] { turn.messageHeard(turn.asideUntil()); });
            begin = takeTurn(turn, end, begin + 1s);
        }
        const TimePoint end = standAsideForOneOfThree(turn, begin);
        const int rest = uses < Turn::enoughUses ? 180 : 4;
        EXPECT_EQ(asideAfter(turn, end + rest * (end - begin) - span - 1us), span + Turn::wakeUp);
        EXPECT_EQ(asideAfter(turn, end + rest * (end - begin) - span), 3 * span + Turn::wakeUp);
    }
}

TEST(Turn, IsFollowedByTheNextAsideWhereOthersUsedTheLast)
{
    Turn turn = turnBeside(1);
    standAsideOnce(turn, at(1ms), [&] { turn.messageHeard(at(2ms)); });
    EXPECT_FALSE(turn.mayFollow(at(4ms)));
    standAsideOnce(turn, at(4ms), [&] { turn.refused(at(4500us)); });
    EXPECT_FALSE(turn.mayFollow(at(8ms)));
}

TEST(Turn, IsFollowedByTheNextAsideWhereTheMessageOfWhoUsedTheLastCameLate)
{
    Turn turn = turnBeside(1);
    const TimePoint end = standAsideOnce(turn, at(1ms), [] {});
    EXPECT_TRUE(turn.mayFollow(end + 1ms));
    turn.messageHeard(end + 1ms);
    EXPECT_FALSE(turn.mayFollow(end + 1ms));

    standAsideOnce(turn, at(10ms), [] {});
    tell(turn, at(12ms), true, false);
    turn.messageHeard(at(12ms)); // of a hold after this client's, perhaps
    EXPECT_TRUE(turn.mayFollow(at(13ms)));
}

TEST(Turn, DoesNotTakeMessagesOfReleasesBeforeItListenedForItsOwn)
{
    Turn turn = turnBeside(1);
    tell(turn, at(500us), false, true); // the client seems not to listen: its subscription is under way
    turn.listens();
    grant(turn, at(600us));
    standAsideOnce(turn, at(1ms), [&] { turn.messageHeard(at(2ms)); });
    EXPECT_FALSE(turn.mayFollow(at(4ms)));
}

TEST(Turn, SaysNothingOfAnAsideInWhichNobodyOfItsOwnWanted)
{
    Turn turn = turnBeside(1);
    tell(turn, at(1ms), false, false);
    grant(turn, at(50ms));
    EXPECT_FALSE(turn.mayFollow(at(51ms)));
}

TEST(Turn, IsFollowedByTurnsAsLongAsItWasWhereHoldsAreLong)
{
    Turn turn = turnBeside(3);
    tell(turn, at(5ms), false, false);
    EXPECT_EQ(turn.asideUntil(), at(5ms + 15ms + Turn::wakeUp));
    Turn longest = turnBeside(3);
    tell(longest, at(1h), false, false);
    EXPECT_EQ(longest.asideUntil(), at(1h + Turn::longest + Turn::wakeUp));
}

TEST(Turn, IsFollowedByTurnsAsLongAsItsOwnTimeWhereItWentOnBeyondThat)
{
    Turn turn = turnBeside(0);
    EXPECT_TRUE(turn.mayFollow(at(1ms))) << "nobody else is known to listen";
    EXPECT_TRUE(turn.mayFollow(at(8ms)));
    tell(turn, at(10ms), false, false);
    turn.othersListen(1, at(10ms));
    EXPECT_EQ(turn.asideUntil(), at(10ms + 1ms + Turn::wakeUp));
}

/// A client whose holds take 40 ms has been refused when it stood aside for the longest time.
Turn refusedAside()
{
    Turn turn = turnBeside(3);
    tell(turn, at(40ms), false, false);
    EXPECT_EQ(turn.asideUntil(), at(40ms + 20ms + Turn::wakeUp)) << "then it asks, in the middle of another hold";
    turn.refused(turn.asideUntil());
    EXPECT_EQ(turn.asideUntil(), TimePoint{}) << "it polls, and its new waiters ask";
    return turn;
}

TEST(Turn, LetsTheOthersInBeforeItselfAtEachReleaseUntilTheyHadTheirLongTurns)
{
    Turn turn = refusedAside();
    turn.messageHeard(at(120ms));
    EXPECT_TRUE(turn.defers(at(120ms)));
    EXPECT_EQ(turn.grace(), Turn::wakeUp);
    turn.refused(at(121ms));
    EXPECT_TRUE(turn.defers(at(160ms - 1us)));
    EXPECT_FALSE(turn.defers(at(160ms)));
    turn.refused(at(161ms));
    EXPECT_FALSE(turn.defers(at(161ms))) << "their time is over";
}

TEST(Turn, LetsNobodyInBeforeItselfAfterAsManyReleasesAsThereAreOthers)
{
    Turn turn = refusedAside();
    for (const auto when : {70ms, 72ms, 74ms}) {
        EXPECT_TRUE(turn.defers(at(when)));
        turn.messageHeard(at(when));
    }
    EXPECT_FALSE(turn.defers(at(74ms)));
}

TEST(Turn, ThatWasDeferredBeginsWithTheNextHold)
{
    Turn turn = refusedAside();
    turn.othersListen(3, at(100ms)); // the answer to the release comes late
    EXPECT_EQ(turn.asideUntil(), TimePoint{});
    grant(turn, at(121ms));
    EXPECT_FALSE(turn.defers(at(121ms)));
    EXPECT_TRUE(turn.mayFollow(at(121ms + span - 1us)));
    EXPECT_FALSE(turn.mayFollow(at(121ms + span)));
}

TEST(Turn, AsideEndsWithAMessageWhenItIsOverButForTheWakeUp)
{
    Turn turn = turnBeside(2);
    tell(turn, at(5ms), false, false);
    for (int i = 0; i < 10; ++i) {
        turn.messageHeard(at(6ms));
    }
    EXPECT_FALSE(turn.endsWithMessage(at(15ms - 1us))) << "those may all have been of one turn";
    EXPECT_TRUE(turn.endsWithMessage(at(15ms)));
}

TEST(Turn, AsideEndsWithTheMessageOfTheLastOtherWhoseTurnWasShorter)
{
    Turn turn = turnBeside(2);
    tell(turn, at(30ms), false, false);
    turn.messageHeard(at(30ms + 2 * span - 1us));
    turn.messageHeard(at(32ms));
    EXPECT_FALSE(turn.endsWithMessage(at(32ms))) << "both may be of one turn, which takes a while";
    turn.messageHeard(at(32ms + 2 * span - 1us));
    EXPECT_FALSE(turn.endsWithMessage(at(32ms + 2 * span - 1us)));
    turn.messageHeard(at(42ms));
    EXPECT_TRUE(turn.endsWithMessage(at(42ms))) << "the lock would be idle until the others' time is over";
    grant(turn, at(42ms));
    EXPECT_FALSE(turn.isInDoubt()) << "both used their time";
}

} // namespace
} // namespace redislock::test
