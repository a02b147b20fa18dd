#include "link/thread_link.hpp"

#include "link/request/patience.hpp"
#include "values/system/process.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <new>

namespace redislock::detail {

ThreadLink::ThreadLink(Background background, std::chrono::milliseconds timeout, std::uint64_t seed, ReplyLimits limits,
                       bool isInCluster)
    : background_(std::move(background)), timeout_(timeout), limits_(limits), link_(timeout, seed, isInCluster)
{
}

/// Whether a call without an answer may be given up. After a standstill of this process, what came meanwhile must be
/// read first, by this thread or another.
bool ThreadLink::mayJudge(const Standstill& standstill, TimePoint now) const noexcept
{
    return !link_.isOpen() || standstill.isOver(emptyAt_, now);
}

bool ThreadLink::enqueue(std::shared_ptr<Call> call, std::shared_ptr<Call> behind)
{
    const Uncancelled held;
    FinishedCalls finished;
    const bool hurried = call->isHurried;
    const TimePoint now = BootClock::now();
    const Lock lock(mutex_);
    if (!link_.enqueue(std::move(call), std::move(behind), now, finished)) {
        return false;
    }
    connectIfNeeded();
    if (hurried && link_.state() == Link::State::connecting) {
        background_.hurry(link_.soonest());
    }
    return true;
}

Outcome ThreadLink::await(Call& call, TimePoint until, First first, const std::stop_token& stop)
{
    constexpr std::chrono::milliseconds patience(2);  // the thread that is to lead may have left
    constexpr std::chrono::nanoseconds soon(200'000); // an answer that comes sooner is worth no sleep, if others run
    const Uncancelled held;
    Lock lock(mutex_);
    Standstill standstill(call.sentAt);
    const auto result = [&](Outcome outcome) {
        outcome.stood = standstill.time();
        return outcome;
    };
    if (first == First::follow) {
        lock.unlock();
        flush();
        const auto reasons = standstill.sleep(call.signal, std::min(until, BootClock::now() + patience));
        if ((reasons & Signal::done) != 0) {
            return result(call.outcome);
        }
        lock.lock();
    }
    while (call.pending) {
        if (stop.stop_requested()) {
            return result({.fault = {}, .calledOff = true});
        }
        if (link_.isOpen() && !led_) {
            lead(lock, call, until, standstill, stop);
        } else {
            writeForLeader(lock);
            if (!call.pending) {
                break;
            }
            const TimePoint began = standstill.note(); // the leader soon reads what came while all stood still
            const TimePoint wake = mayJudge(standstill, began) ? until : std::max(until, began + patience);
            const auto yields = answersTake_ <= soon ? soon : std::chrono::nanoseconds::zero();
            lock.unlock();
            call.signal.yieldAwhile(yields);
            const auto reasons = standstill.sleep(call.signal, wake);
            if ((reasons & Signal::done) != 0) {
                return result(call.outcome); // the thread that finished it touched the signal last
            }
            lock.lock();
        }
        if (const TimePoint now = BootClock::now(); call.pending && now >= until && mayJudge(standstill, now)) {
            const Fault fault = link_.giveUp(call);
            wakeOneWaiter(); // this thread may have been chosen to lead
            // a call that stays on the connection cannot be asked again: its caller is not told of a standstill
            return call.pending ? Outcome{false, fault} : result({false, fault});
        }
    }
    return result(call.outcome);
}

void ThreadLink::flush()
{
    const Uncancelled held;
    FinishedCalls finished;
    Lock lock(mutex_);
    auto progress = writeNow(lock);
    if (!wantsLeader()) {
        return; // whoever leads reads the replies
    }
    led_ = true;
    if (progress == Progress::moved && successor() != nullptr) {
        // the server may have been woken to run on this processor next: waking a sleeper is slow, and the server would
        // wait for that
        lock.unlock();
        Signal::letOthersRun();
        lock.lock();
        progress = readOrBreak(lock, finished, TimePoint{});
    }
    if (progress != Progress::broken) {
        progress = write(lock);
    }
    if (hasEnded(progress)) {
        disconnect(Cause::connectionLost, finished);
    }
    resign(finished);
}

/// Writes, then reads.
ThreadLink::Progress ThreadLink::step(Lock& lock, FinishedCalls& finished, TimePoint until)
{
    const auto progress = write(lock);
    return progress == Progress::broken ? progress : readOrBreak(lock, finished, until);
}

/// Running out of memory ends the connection: what was under way on it cannot be answered any more.
ThreadLink::Progress ThreadLink::readOrBreak(Lock& lock, FinishedCalls& finished, TimePoint until)
{
    try {
        return read(lock, finished, until);
    } catch (const std::bad_alloc&) {
        return Progress::broken;
    }
}

/// Leads until the own call is finished, its time is over, it is called off, or the connection ends. A thread that
/// stops leading tells the others of their answers after that: the next leader's request need not wait for it.
void ThreadLink::lead(Lock& lock, const Call& own, TimePoint until, Standstill& standstill, const std::stop_token& stop)
{
    constexpr std::chrono::milliseconds nap(10); // no signal wakes a thread that waits for the socket: it looks itself
    FinishedCalls finished;
    TimePoint began = standstill.note();
    REDISLOCK_ASSERT(!led_ && link_.isOpen());
    led_ = true;
    for (bool leads = true; leads;) { // once even if its time is over: what has come is read
        const auto progress = step(lock, finished, stop.stop_possible() ? std::min(until, began + nap) : until);
        emptyAt_ = progress == Progress::stuck ? began : emptyAt_;
        began = standstill.note();
        if (isOver(progress, began)) {
            disconnect(whyOver(progress), finished);
        }
        changeOver(finished);
        leads =
            own.pending && link_.isOpen() && !stop.stop_requested() && (began < until || !mayJudge(standstill, began));
        if (!leads) {
            if (link_.isOpen() && hasEnded(write(lock))) {
                disconnect(Cause::connectionLost, finished);
            }
            resign(finished);
        }
        if (!finished.empty()) {
            {
                const Gap gap(lock);
                finished.tell();
            }
            began = standstill.note();
        }
    }
}

/// Ends leadership: what is left goes to a waiting caller, or to the sweep. What was queued has been written before.
void ThreadLink::resign(FinishedCalls& finished)
{
    REDISLOCK_ASSERT(led_);
    led_ = false;
    if (!link_.isOpen()) {
        stream_.reset(); // after shutdown()
    }
    changeOver(finished);
    wakeOneWaiter();
}

/// Makes sure that somebody leads if there is anything to do.
void ThreadLink::wakeOneWaiter()
{
    if (!wantsLeader()) {
        return;
    }
    if (Call* call = successor()) {
        call->signal.notify(Signal::look);
        return;
    }
    armSweep();
}

/// The waiting call whose caller should lead next: the last one is answered last, so its caller leads the longest.
Call* ThreadLink::successor() const noexcept
{
    const auto& queue = link_.queue();
    for (std::size_t i = queue.size(); i-- > 0;) {
        if (queue[i]->mode == Call::Mode::awaited) {
            return queue[i].get();
        }
    }
    return nullptr;
}

void ThreadLink::armSweep()
{
    if (!sweeping_) {
        sweeping_ = true;
        background_.sweepSoon();
    }
}

/// Reads what has come and ends the calls it answers. Waits at most until @p until, or until the oldest request's time
/// is over. Leader only.
ThreadLink::Progress ThreadLink::read(Lock& lock, FinishedCalls& finished, TimePoint until)
{
    if (link_.isIdle()) { // no reply is due before another caller's write has ended
        awaitSend(lock, until);
        return Progress::stuck;
    }
    if (until > TimePoint{} && crowd_ > 1 && link_.takesRequests() && letCrowdQueue(lock)) {
        return Progress::stuck;
    }
    if (link_.isIdle()) {
        return Progress::stuck;
    }
    const TimePoint limit = std::min(until, link_.dueAt());
    const bool writing = writtenBytes_ < writing_.size();
    const bool alone = crowd_ <= 1; // no other caller will queue a request to be written meanwhile
    REDISLOCK_ASSERT(!reads_ && led_);
    reads_ = true;
    Transferred received;
    std::size_t count = 0;
    auto status = ReplyReader::Status::needMore;
    {
        const Gap gap(lock);
        received = stream_->readUntil(limit, *buffer_, writing, alone && !writing);
        if (received.status == Transferred::Status::ok) {
            reader_->feed({buffer_->data(), received.bytes});
            for (;;) {
                if (count == replies_.size()) {
                    replies_.emplace_back();
                }
                status = reader_->next(replies_[count]);
                if (status != ReplyReader::Status::complete) {
                    break;
                }
                ++count;
            }
        }
    }
    reads_ = false;
    if (received.bytes > 0 && count == 0) {
        link_.heard(BootClock::now());
    }
    const bool solicited = dispatch(count, finished);
    if (received.status == Transferred::Status::closed || status == ReplyReader::Status::broken || !solicited) {
        return Progress::broken;
    }
    return count > 0 ? Progress::moved : Progress::stuck;
}

/// Gives the first replies to their calls. @return false when a reply belongs to no call: the stream cannot be trusted
/// any more.
bool ThreadLink::dispatch(std::size_t count, FinishedCalls& finished)
{
    if (count == 0 || link_.isIdle()) {
        return count == 0;
    }
    const TimePoint now = BootClock::now();
    answersTake_ += (now - link_.queue().oldestSent() - answersTake_) / 8;
    (void)finished.takeAwaited();
    for (std::size_t i = 0; i < count; ++i) {
        if (replies_[i].isError()) {
            background_.refused(replies_[i], link_.awaited());
        }
        const auto heard = link_.received(replies_[i], now, finished);
        if (heard == Link::Heard::unexpected) {
            return false;
        }
        if (heard == Link::Heard::demotion) {
            try {
                background_.demoted(stream_->peer());
            } catch (...) { // out of memory: the next attempt finds out
                continue;
            }
        }
    }
    crowd_ = finished.takeAwaited();
    return true;
}

/// Why a connection is over: nothing came in time, or the connection ended.
Reason ThreadLink::whyOver(Progress progress) noexcept
{
    return progress == Progress::stuck ? Cause::silent : Cause::connectionLost;
}

bool ThreadLink::sweep()
{
    FinishedCalls finished;
    Lock lock(mutex_);
    connectIfNeeded(); // there may have been no memory for it
    if (wantsLeader()) {
        led_ = true;
        auto progress = step(lock, finished, TimePoint{});
        const bool over = isOver(progress, BootClock::now());
        progress = over ? progress : write(lock);
        if (over || progress == Progress::broken) {
            disconnect(whyOver(progress), finished);
        }
        sweeping_ = true; // this is the sweep: resign() must not ask for another
        resign(finished);
    }
    lock.unlock();
    finished.tell();
    lock.lock();
    // calls that wait for a connection that is being made are taken up when there is one
    sweeping_ = link_.state() != Link::State::connecting && !link_.queue().empty();
    return sweeping_;
}

} // namespace redislock::detail
