#include "link/link.hpp"

#include "link/request/patience.hpp"

#include <new>
#include <utility>

namespace redislock::detail {

namespace {

/// How a script is named first. Behind ASKING it is sent whole: a NOSCRIPT would have used that up.
Call::Form firstForm(const Call& call) noexcept
{
    return call.isAsking ? Call::Form::byText : Call::Form::bySha;
}

} // namespace

bool Link::enqueue(std::shared_ptr<Call> call, std::shared_ptr<Call> behind, TimePoint now, FinishedCalls& finished)
{
    const bool isOver = state() == State::closed;
    if (!isOver) { // all that takes memory comes before anything is queued
        patiently([&] {
            queue_.makeRoom(2);
            call->form = firstForm(*call);
            encode(*call, behind.get());
        });
    }
    for (auto* each : {&call, &behind}) {
        if (*each == nullptr) {
            continue;
        }
        (*each)->sentAt = now; // until it is written
        (*each)->signal.clearDone();
        if (!isOver) {
            REDISLOCK_ASSERT(!queue_.contains(**each));
            (*each)->pending = true;
            queue_.push(std::move(*each));
            continue;
        }
        const Outcome refused{false, {Failure::fatal, closedFor_}};
        (*each)->outcome = refused;
        if ((*each)->mode == Call::Mode::awaited) { // an owner may hold locks that finished() takes
            finish(std::move(*each), refused, finished);
        }
    }
    return !isOver;
}

/// Makes the bytes if there is a connection for them; until then the queue alone remembers the calls.
void Link::encode(Call& call, Call* behind)
{
    const auto before = bytes_.size();
    try {
        if (takesRequests()) {
            call.encode(bytes_, call.form);
            if (behind != nullptr) {
                behind->encode(bytes_, behind->form = firstForm(*behind));
            }
        }
    } catch (...) {
        bytes_.resize(before); // half a request would spoil the next
        throw;
    }
}

void Link::begin(TimePoint now, FinishedCalls& finished)
{
    REDISLOCK_ASSERT(isIdle());
    const Fault unwanted = overdue(false);
    for (std::size_t i = 0; i < queue_.size();) {
        if (queue_[i]->isWanted(now)) {
            ++i;
            continue;
        }
        auto call = queue_[i];
        (void)queue_.erase(*call);
        finish(std::move(call), {false, unwanted}, finished);
    }
    bytes_.clear();
    for (std::size_t i = 0; i < queue_.size(); ++i) {
        queue_[i]->encode(bytes_, queue_[i]->form = firstForm(*queue_[i]));
    }
}

Protocol::Heard Link::received(Reply& reply, TimePoint now, FinishedCalls& finished)
{
    auto call = queue_.answered();
    if (call == nullptr) {
        return Heard::unexpected;
    }
    heard(now);
    auto what = Heard::expected;
    if (isDemotion(reply)) {
        what = leave();
    } else if (!reply.isError()) {
        policy_.served();
    }
    if (isNoScript(reply) && call->isScript() && call->form == Call::Form::bySha &&
        call->mode != Call::Mode::abandoned && call->isWanted(now)) {
        sendWhole(std::move(call), finished);
    } else if (isInCluster_ && isRedirection(reply)) {
        policy_.served();
        call->asks = reply.text.starts_with("ASK");
        std::swap(call->reply, reply);
        finish(std::move(call), {false, {Failure::moved, Cause::redirected}}, finished);
    } else {
        std::swap(call->reply, reply);
        finish(std::move(call), {true, {}}, finished);
    }
    return what;
}

void Link::sendWhole(std::shared_ptr<Call> call, FinishedCalls& finished) noexcept
{
    call->form = Call::Form::byText;
    try {
        queue_.makeRoom();
        encode(*call);
        queue_.push(std::move(call));
    } catch (const std::bad_alloc&) { // treated as if its answer were lost
        finish(std::move(call), {false, {Failure::lostReply, Cause::connectionLost}}, finished);
    }
}

bool Link::withdraw(Call& call) noexcept
{
    if (takesRequests() || !queue_.erase(call)) {
        return false;
    }
    call.pending = false;
    return true;
}

Fault Link::giveUp(Call& call) noexcept
{
    REDISLOCK_ASSERT(call.pending);
    const bool sent = !withdraw(call);
    if (sent) {
        call.mode = Call::Mode::abandoned;
    }
    return overdue(sent);
}

void Link::fail(const std::shared_ptr<Call>& call, Errc why, FinishedCalls& finished) noexcept
{
    if (call->pending && withdraw(*call)) {
        finish(call, {false, {Failure::fatal, why}}, finished);
    }
}

void Link::handOn(const IsElsewhere& isElsewhere, FinishedCalls& finished)
{
    handsOn_ = isOpen();
    for (std::size_t i = 0; !handsOn_ && i < queue_.size();) {
        const auto call = queue_[i];
        if (!isElsewhere(*call)) {
            ++i;
            continue;
        }
        (void)queue_.erase(*call);
        finish(call, {false, {Failure::moved, Cause::redirected}}, finished);
    }
}

std::shared_ptr<Call> Link::takeFirst() noexcept
{
    REDISLOCK_ASSERT(isIdle());
    return queue_.abandon();
}

void Link::end(Fault fault, bool onlyWritten, FinishedCalls& finished) noexcept
{
    for (auto left = onlyWritten ? queue_.unanswered() : queue_.size(); left > 0; --left) {
        if (auto call = queue_.abandon()) {
            finish(std::move(call), {false, fault}, finished);
        }
    }
    while (auto call = handsOn_ ? queue_.abandon() : nullptr) {
        finish(std::move(call), {false, {Failure::moved, Cause::redirected}}, finished);
    }
    handsOn_ = false;
}

void Link::finish(std::shared_ptr<Call> call, Outcome outcome, FinishedCalls& finished) noexcept
{
    call->pending = false;
    call->outcome = outcome;
    finished.add(std::move(call));
}

} // namespace redislock::detail
