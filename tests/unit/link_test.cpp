// The protocol of a connection, fed by hand: no socket, no clock, no thread.
#include "unit/thread_link_rig.hpp"

#include "link/link.hpp"
#include "link/request/calls.hpp"
#include "support/replies.hpp"

namespace redislock::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Mode = Call::Mode;

/// A call that is worth sending until it is not.
class Fading final : public Call {
public:
    void encode(std::string& out, Form /*by*/) override { appendCommand(out, {"EVALSHA", "fading"}); }
    [[nodiscard]] bool isWanted(TimePoint /*now*/) const noexcept override { return wanted; }
    bool wanted = true;
};

class LinkTest : public ::testing::Test {
protected:
    static constexpr auto timeout = 100ms;

    bool enqueue(const std::shared_ptr<Call>& call, const std::shared_ptr<Call>& behind = nullptr)
    {
        FinishedCalls finished;
        return link.enqueue(call, behind, now, finished);
    }
    void open()
    {
        link.connecting();
        FinishedCalls finished;
        link.opened(now, finished);
    }
    void lose(Fault fault = {Failure::lostReply, Cause::connectionLost})
    {
        FinishedCalls finished;
        (void)link.lost(fault, now, finished);
    }
    void fail(Fault fault = {Failure::notConnected, Errc::unreachable})
    {
        link.connecting();
        FinishedCalls finished;
        link.failed(fault, now, finished);
    }
    Link::Heard answer(Reply reply)
    {
        FinishedCalls finished;
        return link.received(reply, now, finished);
    }
    Link::Heard refuse(const std::string& text) { return answer(test::errorReply(text)); }
    Link::Heard answer(std::int64_t number) { return answer(test::numberReply(number)); }
    /// What is written now: the names of the calls, those that are sent whole after EVAL.
    std::vector<std::string> write()
    {
        std::string bytes;
        if (link.hasBytes()) {
            link.takeBytes(bytes, now);
        }
        ReplyReader reader; // requests are arrays of texts, as replies may be
        reader.feed(bytes);
        std::vector<std::string> names;
        for (Reply request; reader.next(request) == ReplyReader::Status::complete;) {
            names.push_back((request.elements.at(0).text == "EVAL" ? "EVAL " : "") + request.elements.at(1).text);
        }
        return names;
    }

    TimePoint now{1h};
    Link link{timeout, 1};
    const std::shared_ptr<TestCall> a = awaited("a"), b = awaited("b"), x = detached("x"), y = detached("y");
};

// --- Making a connection ---------------------------------------------------------------------------------------------

TEST_F(LinkTest, ConnectsWhenACallNeedsItAndNotTwice)
{
    EXPECT_FALSE(link.attemptAt());
    enqueue(a);
    ASSERT_TRUE(link.attemptAt());
    EXPECT_LE(*link.attemptAt(), now) << "at once";
    link.connecting();
    EXPECT_FALSE(link.attemptAt());
    EXPECT_THAT(write(), IsEmpty()) << "there is nobody to write to";
}

TEST_F(LinkTest, AFailedAttemptEndsAllCallsAndTheNextIsLater)
{
    enqueue(a);
    enqueue(x);
    fail({Failure::fatal, Errc::authFailed});
    EXPECT_EQ(inWords(*a), make_error_code(Errc::authFailed).message());
    EXPECT_EQ(x->ends, 1);
    EXPECT_FALSE(link.attemptAt()) << "nobody needs it";
    enqueue(b);
    EXPECT_GT(link.attemptAt(), now);
    EXPECT_LT(link.attemptAt(), now + 100ms);
}

TEST_F(LinkTest, WhoDoesNotWaitHasAShortPauseHoweverManyAttemptsFailed)
{
    for (int i = 0; i < 10; ++i) {
        enqueue(b);
        fail();
    }
    enqueue(a);
    EXPECT_GE(link.attemptAt(), now + 800ms);
    EXPECT_LE(link.soonest(), now + 50ms);
}

TEST_F(LinkTest, IsMadeAgainAtOnceWhenTheServerHasMoved)
{
    fail();
    enqueue(a);
    link.moved();
    EXPECT_LE(link.attemptAt(), now) << "the failure was the old server's";
    open();
    link.moved();
    lose();
    EXPECT_LE(link.attemptAt(), now) << "so was the end of the connection";
}

TEST_F(LinkTest, IsMadeAgainAtOnceAfterItServedAndLaterIfItDidNot)
{
    enqueue(a);
    open();
    write();
    answer(1);
    lose();
    enqueue(x);
    EXPECT_LE(link.attemptAt(), now);
    open();
    lose();
    EXPECT_GT(link.attemptAt(), now) << "it served nothing";
}

TEST_F(LinkTest, IsMadeThoughNoCallWaitsIfItsDriverWantsIt)
{
    link.want(true);
    EXPECT_TRUE(link.attemptAt());
    link.want(false);
    EXPECT_FALSE(link.attemptAt());
}

// --- Order -----------------------------------------------------------------------------------------------------------

TEST_F(LinkTest, WhatIsQueuedIsWrittenAtOnceInItsOrderAndAnsweredInIt)
{
    enqueue(a);
    enqueue(x);
    open();
    enqueue(y, b);
    EXPECT_THAT(write(), ElementsAre("a", "x", "y", "b"));
    for (int i = 1; i <= 4; ++i) {
        EXPECT_EQ(answer(i), Link::Heard::expected);
    }
    EXPECT_EQ(inWords(*a) + inWords(*x) + inWords(*y) + inWords(*b), "1234");
    EXPECT_EQ(x->ends, 1);
    EXPECT_EQ(a->ends, 0) << "its thread is woken";
    EXPECT_EQ(answer(5), Link::Heard::unexpected);
}

TEST_F(LinkTest, TheTimeOfACallIsThatOfItsLastBytes)
{
    enqueue(x);
    open();
    now += 1s;
    write();
    EXPECT_EQ(x->sentAt, now);
    EXPECT_EQ(link.dueAt(), now + timeout);
}

// --- Scripts that the server does not know ---------------------------------------------------------------------------

TEST_F(LinkTest, AnUnknownScriptIsSentWholeOnceBehindTheOthers)
{
    enqueue(x);
    open();
    write();
    enqueue(y);
    refuse("NOSCRIPT No matching script.");
    EXPECT_TRUE(x->pending);
    EXPECT_THAT(write(), ElementsAre("y", "EVAL x"));
    answer(2);
    refuse("NOSCRIPT really");
    EXPECT_EQ(inWords(*x), "NOSCRIPT really");
    enqueue(x);
    const auto command = std::make_shared<CommandCall>(std::vector<std::string>{"EVALSHA", "c"});
    enqueue(command);
    EXPECT_THAT(write(), ElementsAre("x", "c")) << "the next use names it again";
    answer(1);
    refuse("NOSCRIPT");
    EXPECT_EQ(inWords(*command), "NOSCRIPT") << "it has no text";
}

TEST_F(LinkTest, WhatNobodyWantsAnyMoreIsNotSentWhole)
{
    const auto fading = std::make_shared<Fading>();
    enqueue(a);
    enqueue(fading);
    open();
    write();
    (void)link.giveUp(*a);
    fading->wanted = false;
    refuse("NOSCRIPT");
    refuse("NOSCRIPT");
    EXPECT_THAT(write(), IsEmpty());
    EXPECT_FALSE(a->pending);
    EXPECT_FALSE(fading->pending);
}

TEST_F(LinkTest, OnTheNextConnectionAScriptIsNamedAgain)
{
    enqueue(x);
    open();
    write();
    refuse("NOSCRIPT");
    lose();
    EXPECT_TRUE(x->pending) << "it was not written";
    open();
    EXPECT_THAT(write(), ElementsAre("x"));
}

// --- The end of a connection -----------------------------------------------------------------------------------------

TEST_F(LinkTest, WhatWasWrittenEndsWithItsConnectionAndTheRestWaitsForTheNext)
{
    const auto fading = std::make_shared<Fading>();
    enqueue(a);
    open();
    write();
    enqueue(fading);
    enqueue(x);
    lose();
    EXPECT_EQ(inWords(*a), "reply lost");
    EXPECT_EQ(inWords(*x), "pending");
    EXPECT_FALSE(link.hasBytes());
    fading->wanted = false;
    open();
    EXPECT_EQ(inWords(*fading), "not connected") << "nobody wants it any more";
    EXPECT_THAT(write(), ElementsAre("x"));
}

TEST_F(LinkTest, AServerThatIsNoMasterIsSentNothingMoreAndLeftWhenAllIsAnswered)
{
    enqueue(a);
    enqueue(x);
    open();
    write();
    enqueue(y);
    EXPECT_EQ(refuse("READONLY You can't write against a read only replica."), Link::Heard::demotion);
    EXPECT_EQ(link.state(), Link::State::leaving);
    EXPECT_FALSE(link.isOver()) << "an answer is due";
    enqueue(b);
    EXPECT_THAT(write(), IsEmpty());
    EXPECT_EQ(refuse("READONLY"), Link::Heard::expected) << "it is known";
    EXPECT_TRUE(link.isOver());
    lose();
    EXPECT_EQ(link.absence(), Reason(Cause::readOnly));
    EXPECT_LE(link.attemptAt(), now) << "another server may be master";
    open();
    EXPECT_THAT(write(), ElementsAre("y", "b"));
    refuse("READONLY");
    refuse("READONLY");
    lose();
    enqueue(b);
    EXPECT_GT(link.attemptAt(), now) << "the same a moment later";
}

TEST_F(LinkTest, AServerIsSilentThatSendsNothingThoughAnAnswerIsDue)
{
    enqueue(x);
    open();
    EXPECT_EQ(link.dueAt(), TimePoint::max());
    write();
    now += timeout - 1ms;
    EXPECT_FALSE(link.timeIsOver(now));
    enqueue(y);
    write();
    now += 1ms;
    EXPECT_TRUE(link.timeIsOver(now));
    answer(1);
    now += timeout - 1ms;
    EXPECT_FALSE(link.timeIsOver(now)) << "it has answered";
    link.heard(now);
    now += timeout - 1ms;
    EXPECT_FALSE(link.timeIsOver(now)) << "a part of an answer has come";
    now += 1ms;
    EXPECT_TRUE(link.timeIsOver(now));
}

// --- Another connection in its place ---------------------------------------------------------------------------------

class ReplacedLink : public LinkTest {
protected:
    void openUntil(TimePoint replaceAt)
    {
        link.connecting();
        FinishedCalls finished;
        link.opened(now, finished, replaceAt);
    }
    void replace()
    {
        FinishedCalls finished;
        link.replaced(now, finished);
    }
};

TEST_F(ReplacedLink, IsWantedOnceAtItsTimeAndWritesMeanwhile)
{
    enqueue(a);
    open();
    EXPECT_FALSE(link.replacementAt()) << "it has no end";
    lose();
    openUntil(now + 1h);
    EXPECT_EQ(link.replacementAt(), now + 1h);
    link.replacing();
    EXPECT_FALSE(link.replacementAt());
    enqueue(x);
    EXPECT_THAT(write(), ElementsAre("a", "x"));
}

TEST_F(ReplacedLink, AnswersWhatWasWrittenThereAndWritesTheRestOnTheOther)
{
    enqueue(a);
    openUntil(now);
    link.replacing();
    write();
    enqueue(x);
    ASSERT_TRUE(link.retire(now + 2h));
    enqueue(y);
    enqueue(b);
    EXPECT_THAT(write(), IsEmpty());
    EXPECT_FALSE(link.isReplaceable()) << "an answer is due";
    EXPECT_EQ(link.giveUp(*b), (Fault{Failure::notConnected, Cause::silent})) << "it was not sent";
    refuse("NOSCRIPT");
    EXPECT_TRUE(link.isReplaceable());
    replace();
    EXPECT_THAT(write(), ElementsAre("x", "y", "a")) << "each once";
    answer(1);
    answer(2);
    answer(3);
    EXPECT_EQ(inWords(*x) + inWords(*y) + inWords(*a), "123");
    EXPECT_EQ(link.replacementAt(), now + 2h);
}

TEST_F(ReplacedLink, StaysWhileTheOtherCannotBeMadeWithAGrowingPause)
{
    enqueue(a);
    openUntil(now);
    auto pause = 0ns;
    for (int i = 0; i < 4; ++i) {
        link.replacing();
        link.notReplaced(now);
        EXPECT_GT(*link.replacementAt() - now, pause);
        pause = *link.replacementAt() - now;
    }
    EXPECT_THAT(write(), ElementsAre("a"));
    lose();
    EXPECT_FALSE(link.retire(now)) << "an attempt that comes too late";
    EXPECT_EQ(inWords(*a), "reply lost") << "as ever";
    enqueue(b);
    EXPECT_LE(*link.attemptAt(), now + 100ms);
}

TEST_F(ReplacedLink, ThatIsLostOrDemotedMeanwhileIsNotReplaced)
{
    enqueue(a);
    openUntil(now);
    link.replacing();
    write();
    ASSERT_TRUE(link.retire(TimePoint::max()));
    EXPECT_EQ(refuse("READONLY"), Link::Heard::demotion);
    EXPECT_FALSE(link.isReplaceable());
    EXPECT_TRUE(link.isOver());
}

// --- Callers that go -------------------------------------------------------------------------------------------------

TEST_F(LinkTest, ACallIsTakenBackUnlessItMayHaveBeenSent)
{
    enqueue(a);
    enqueue(x);
    EXPECT_EQ(link.giveUp(*a), (Fault{Failure::notConnected, Cause::connectTimedOut}));
    EXPECT_FALSE(a->pending);
    open();
    EXPECT_EQ(link.giveUp(*x), (Fault{Failure::lostReply, Cause::silent})) << "its bytes are on their way";
    EXPECT_EQ(x->mode, Mode::abandoned);
    EXPECT_THAT(write(), ElementsAre("x"));
    EXPECT_EQ(answer(1), Link::Heard::expected);
    EXPECT_EQ(x->ends, 0) << "nobody is told";
}

TEST_F(LinkTest, ACallMayBeFailedWhileItWaitsToBeSent)
{
    FinishedCalls finished;
    enqueue(a);
    link.fail(a, Errc::shutdown, finished);
    EXPECT_EQ(inWords(*a), afterShutdown);
    enqueue(b);
    open();
    link.fail(b, Errc::shutdown, finished);
    EXPECT_TRUE(b->pending);
}

TEST_F(LinkTest, TheEndEndsEverythingAndLaterCallsAreRefused)
{
    enqueue(x);
    open();
    write();
    enqueue(y);
    {
        FinishedCalls finished;
        link.close(Errc::forked, finished);
        link.close(Errc::shutdown, finished);
    }
    EXPECT_EQ(inWords(*x), make_error_code(Errc::forked).message());
    EXPECT_EQ(y->ends, 1);
    EXPECT_FALSE(enqueue(a, x));
    EXPECT_EQ(inWords(*a), make_error_code(Errc::forked).message());
    EXPECT_EQ(x->ends, 1) << "who queued it knows";
    EXPECT_FALSE(link.attemptAt());
    EXPECT_EQ(answer(1), Link::Heard::unexpected);
}

// --- In a cluster ----------------------------------------------------------------------------------------------------

TEST_F(LinkTest, ARedirectionIsAnErrorOutsideAClusterAndNewsInside)
{
    enqueue(a);
    open();
    write();
    refuse("MOVED 1 127.0.0.1:7001");
    EXPECT_TRUE(a->outcome.replied);

    Link inside(timeout, 1, true);
    FinishedCalls finished;
    for (const auto& call : {b, a}) {
        inside.enqueue(call, nullptr, now, finished);
    }
    inside.connecting();
    inside.opened(now, finished);
    std::string bytes;
    inside.takeBytes(bytes, now);
    for (const auto* text : {"MOVED 1 127.0.0.1:7001", "ASK 1 127.0.0.1:7001"}) {
        Reply reply = test::errorReply(text);
        EXPECT_EQ(inside.received(reply, now, finished), Link::Heard::expected);
    }
    for (const auto& call : {b, a}) {
        EXPECT_FALSE(call->outcome.replied);
        EXPECT_EQ(call->outcome.fault, (Fault{Failure::moved, Cause::redirected}));
    }
    EXPECT_FALSE(b->asks);
    EXPECT_TRUE(a->asks);
    EXPECT_TRUE(inside.takesRequests()) << "for other slots";
}

TEST_F(LinkTest, WhatGoesBehindAskingIsSentWhole)
{
    a->isAsking = true;
    open();
    enqueue(b, a);
    EXPECT_THAT(write(), ElementsAre("b", "EVAL a"));
    lose();
    enqueue(a);
    open();
    EXPECT_THAT(write(), ElementsAre("EVAL a")) << "on the next connection too";
}

TEST_F(LinkTest, HandsOnWhatWaitsForAConnectionAndIsMeantForAnotherNode)
{
    const auto isB = [this](const Call& call) { return &call == b.get(); };
    FinishedCalls finished;
    enqueue(a);
    enqueue(b);
    link.handOn(isB, finished);
    EXPECT_EQ(b->outcome.fault.failure, Failure::moved);
    EXPECT_TRUE(a->pending);
    open();
    write();
    enqueue(b);
    enqueue(x);
    link.handOn(isB, finished);
    EXPECT_TRUE(b->pending) << "the node redirects it itself";
    lose();
    EXPECT_EQ(inWords(*a), "reply lost");
    EXPECT_EQ(b->outcome.fault.failure, Failure::moved);
    EXPECT_EQ(x->ends, 1) << "whatever was not sent when the connection ended";
}

} // namespace
} // namespace redislock::detail
