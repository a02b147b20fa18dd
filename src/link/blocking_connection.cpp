#include "link/blocking_connection.hpp"

#include "link/request/patience.hpp"
#include "values/system/process.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <new>

namespace redislock::detail {

BlockingConnection::BlockingConnection(Background background, std::chrono::milliseconds timeout, std::uint64_t seed)
    : background_(std::move(background)), timeout_(timeout), random_(seed)
{
}

/// Whether a call without an answer may be given up. After a standstill of this process, what came meanwhile must be
/// read first, by this thread or another.
bool BlockingConnection::mayJudge(const Standstill& standstill, TimePoint now) const noexcept
{
    return state_ != State::connected || standstill.isOver(emptyAt_, now);
}

bool BlockingConnection::enqueue(std::shared_ptr<Call> call, std::shared_ptr<Call> behind)
{
    const Uncancelled held;
    FinishedCalls finished;
    bool open = true;
    const bool hurried = call->isHurried;
    const TimePoint now = BootClock::now();
    {
        const Lock lock(mutex_);
        open = state_ != State::closed;
        if (open) { // all that takes memory comes before anything is queued
            patiently([&]() REDISLOCK_THREAD_SAFETY(no_thread_safety_analysis) { // the mutex is locked around it
                queue_.makeRoom(2);
                call->form = Call::Form::bySha;
                put(*call, behind.get());
            });
        }
        for (auto* each : {&call, &behind}) {
            if (*each == nullptr) {
                continue;
            }
            (*each)->sentAt = now; // until it is written
            (*each)->signal.clearDone();
            if (!open) {
                const Outcome refused{false, {Failure::fatal, closedFor_}};
                (*each)->outcome = refused;
                if ((*each)->mode == Call::Mode::awaited) { // an owner may hold locks that finished() takes
                    finish(std::move(*each), refused, finished);
                }
                continue;
            }
            REDISLOCK_ASSERT(!(*each)->pending);
            (*each)->pending = true;
            queue_.push(std::move(*each));
        }
        connectIfNeeded();
        if (hurried && state_ == State::connecting) {
            background_.hurry(policy_.soonest());
        }
    }
    finished.tell();
    return open;
}

/// Makes the bytes if there is a connection for them; until then the queue alone remembers the calls.
void BlockingConnection::put(Call& call, Call* behind)
{
    const auto before = queued_.size();
    try {
        if (takesRequests()) {
            call.encode(queued_, call.form);
            if (behind != nullptr) {
                behind->encode(queued_, behind->form = Call::Form::bySha);
            }
        }
    } catch (...) {
        queued_.resize(before); // half a request would spoil the next
        throw;
    }
}

Outcome BlockingConnection::await(Call& call, TimePoint until, First first, const std::stop_token& stop)
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
        if (state_ == State::connected && !led_) {
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
            if (drop(call)) {
                // The call stays on the connection and cannot be asked again: its caller is not told of a standstill.
                return {false, {Failure::lostReply, Cause::silent}};
            }
            return result({false, {Failure::notConnected, absence_}});
        }
    }
    return result(call.outcome);
}

void BlockingConnection::flush()
{
    const Uncancelled held;
    FinishedCalls finished;
    Lock lock(mutex_);
    auto progress = writeNow(lock);
    if (led_ || state_ != State::connected || queue_.empty()) {
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
        disconnect({Failure::lostReply, Cause::connectionLost}, finished);
    }
    resign();
    lock.unlock();
    finished.tell();
}

/// Writes, then reads.
BlockingConnection::Progress BlockingConnection::step(Lock& lock, FinishedCalls& finished, TimePoint until)
{
    const auto progress = write(lock);
    return progress == Progress::broken ? progress : readOrBreak(lock, finished, until);
}

/// Running out of memory ends the connection: what was under way on it cannot be answered any more.
BlockingConnection::Progress BlockingConnection::readOrBreak(Lock& lock, FinishedCalls& finished, TimePoint until)
{
    try {
        return read(lock, finished, until);
    } catch (const std::bad_alloc&) {
        return Progress::broken;
    }
}

/// Leads until the own call is finished, its time is over, it is called off, or the connection ends. A thread that
/// stops leading tells the others of their answers after that: the next leader's request need not wait for it.
void BlockingConnection::lead(Lock& lock, const Call& own, TimePoint until, Standstill& standstill,
                              const std::stop_token& stop)
{
    constexpr std::chrono::milliseconds nap(10); // no signal wakes a thread that waits for the socket: it looks itself
    FinishedCalls finished;
    TimePoint began = standstill.note();
    REDISLOCK_ASSERT(!led_ && state_ == State::connected);
    led_ = true;
    for (bool leads = true; leads;) { // once even if its time is over: what has come is read
        const auto progress = step(lock, finished, stop.stop_possible() ? std::min(until, began + nap) : until);
        emptyAt_ = progress == Progress::stuck ? began : emptyAt_;
        began = standstill.note();
        if (isOver(progress, began)) {
            disconnect({Failure::lostReply, whyOver(progress)}, finished);
        }
        leads = own.pending && state_ == State::connected && !stop.stop_requested() &&
                (began < until || !mayJudge(standstill, began));
        if (!leads) {
            if (state_ == State::connected && hasEnded(write(lock))) {
                disconnect({Failure::lostReply, Cause::connectionLost}, finished);
            }
            resign();
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
void BlockingConnection::resign()
{
    REDISLOCK_ASSERT(led_);
    led_ = false;
    if (state_ == State::closed) {
        stream_.reset();
    }
    wakeOneWaiter();
}

/// Makes sure that somebody leads if there is anything to do.
void BlockingConnection::wakeOneWaiter()
{
    if (led_ || state_ != State::connected || queue_.empty()) {
        return;
    }
    if (Call* call = successor()) {
        call->signal.notify(Signal::look);
        return;
    }
    armSweep();
}

/// The waiting call whose caller should lead next: the last one is answered last, so its caller leads the longest.
Call* BlockingConnection::successor() const noexcept
{
    for (std::size_t i = queue_.size(); i-- > 0;) {
        if (queue_[i]->mode == Call::Mode::awaited) {
            return queue_[i].get();
        }
    }
    return nullptr;
}

void BlockingConnection::armSweep()
{
    if (!sweeping_) {
        sweeping_ = true;
        background_.sweepSoon();
    }
}

/// Reads what has come and ends the calls it answers. Waits at most until @p until, or until the oldest request's time
/// is over. Leader only.
BlockingConnection::Progress BlockingConnection::read(Lock& lock, FinishedCalls& finished, TimePoint until)
{
    if (queue_.unanswered() == 0) { // no reply is due before another caller's write has ended
        awaitSend(lock, until);
        return Progress::stuck;
    }
    if (until > TimePoint{} && crowd_ > 1 && !leaving_ && letCrowdQueue(lock)) {
        return Progress::stuck;
    }
    if (queue_.unanswered() == 0) {
        return Progress::stuck;
    }
    const TimePoint limit = std::min(until, saturatingAdd(queue_.oldestSent(), timeout_));
    const bool writing = writtenBytes_ < writing_.size();
    const bool alone = crowd_ <= 1; // no other caller will queue a request to be written meanwhile
    REDISLOCK_ASSERT(!reads_ && led_);
    reads_ = true;
    Transferred received;
    std::size_t count = 0;
    auto status = ReplyReader::Status::needMore;
    {
        const Gap gap(lock);
        received = stream_->readUntil(limit, buffer_, writing, alone && !writing);
        if (received.status == Transferred::Status::ok) {
            reader_->feed({buffer_.data(), received.bytes});
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
    const bool solicited = dispatch(replies_, count, finished);
    if (received.status == Transferred::Status::closed || status == ReplyReader::Status::broken || !solicited) {
        return Progress::broken;
    }
    return count > 0 ? Progress::moved : Progress::stuck;
}

/// Gives each reply to its call. @return false when a reply belongs to no call: the stream cannot be trusted any more.
bool BlockingConnection::dispatch(std::vector<Reply>& replies, std::size_t count, FinishedCalls& finished)
{
    if (count > 0 && queue_.unanswered() > 0) {
        crowd_ = 0;
        answersTake_ += (BootClock::now() - queue_.oldestSent() - answersTake_) / 8;
    }
    for (std::size_t i = 0; i < count; ++i) {
        auto call = queue_.answered();
        if (call == nullptr) {
            return false;
        }
        if (isDemotion(replies[i])) {
            leave();
        } else if (!replies[i].isError()) {
            policy_.served();
        }
        if (isNoScript(replies[i]) && call->form == Call::Form::bySha && call->mode != Call::Mode::abandoned &&
            call->isWanted(BootClock::now())) {
            call->form = Call::Form::byText;
            try {
                put(*call);
                queue_.push(std::move(call));
            } catch (const std::bad_alloc&) { // treated as if its answer were lost
                finish(std::move(call), {false, {Failure::lostReply, Cause::connectionLost}}, finished);
            }
            continue;
        }
        if (replies[i].isError()) {
            background_.refused(replies[i]);
        }
        std::swap(call->reply, replies[i]);
        finish(std::move(call), {true, {}}, finished);
    }
    return true;
}

void BlockingConnection::finish(std::shared_ptr<Call> call, Outcome outcome, FinishedCalls& finished) noexcept
{
    call->pending = false;
    call->outcome = outcome;
    crowd_ += call->mode == Call::Mode::awaited ? 1U : 0U;
    finished.add(std::move(call));
}

/// Ends the first calls of the queue without an answer.
void BlockingConnection::abandon(std::size_t count, Fault fault, FinishedCalls& finished) noexcept
{
    for (; count > 0; --count) {
        finish(queue_.abandon(), {false, fault}, finished);
    }
}

/// Whether the connection has ended, after a step.
bool BlockingConnection::hasEnded(Progress progress) const noexcept
{
    return progress == Progress::broken || (leaving_ && queue_.unanswered() == 0);
}

/// Whether the connection is over, after a step. Before a time-out counts, all that has come is read.
bool BlockingConnection::isOver(Progress progress, TimePoint now) const noexcept
{
    const bool timedOut = now >= saturatingAdd(queue_.oldestSent(), timeout_);
    return hasEnded(progress) || (progress == Progress::stuck && timedOut);
}

bool BlockingConnection::sweep()
{
    FinishedCalls finished;
    Lock lock(mutex_);
    connectIfNeeded(); // there may have been no memory for it
    if (state_ == State::connected && !led_ && !queue_.empty()) {
        led_ = true;
        auto progress = step(lock, finished, TimePoint{});
        const bool over = isOver(progress, BootClock::now());
        progress = over ? progress : write(lock);
        if (over || progress == Progress::broken) {
            disconnect({Failure::lostReply, whyOver(progress)}, finished);
        }
        sweeping_ = true; // this is the sweep: resign() must not ask for another
        resign();
    }
    lock.unlock();
    finished.tell();
    lock.lock();
    // calls that wait for a connection that is being made are taken up when there is one
    sweeping_ = (state_ == State::connected || state_ == State::disconnected) && !queue_.empty();
    return sweeping_;
}

} // namespace redislock::detail
