#include "core/operation/background_run.hpp"

#include "core/core.hpp"
#include "wire/assert.hpp"

#include <new>
#include <utility>

namespace redislock::detail {

BackgroundRun::~BackgroundRun()
{
    REDISLOCK_ASSERT(!slot.scheduled());
}

void BackgroundRun::begin()
{
    step([this](Operation& operation) { return cancelled_ ? operation.cancel() : operation.look(); });
    rest_ = {};
}

void BackgroundRun::look() noexcept
{
    if (std::exchange(looking_, true)) {
        return;
    }
    try {
        core_.port.post([self = keep()] {
            Rest rest; // destroyed without the mutex
            const Inside inside(self->core_.port);
            self->looking_ = false;
            self->step([](Operation& operation) { return operation.look(); });
            rest = std::exchange(self->rest_, {});
        });
    } catch (...) { // out of memory: it looks when its time is over
        looking_ = false;
    }
}

void BackgroundRun::cancel()
{
    core_.port.post([weak = std::weak_ptr(keep())] {
        if (const auto self = weak.lock()) {
            Rest rest;
            const Inside inside(self->core_.port);
            self->cancelled_ = true;
            self->step([](Operation& operation) { return operation.cancel(); });
            rest = std::exchange(self->rest_, {});
        }
    });
}

void BackgroundRun::timeIsOver()
{
    if (!awaits_) {
        step([](Operation& operation) { return operation.look(); });
    } else if (operation()->call().pending) { // else the answer is on its way
        step([](Operation& operation) { return operation.answered({.fault = operation.giveUp()}); });
    }
    dropRest();
}

void BackgroundRun::endSleep()
{
    if (!awaits_) {
        step([](Operation& operation) { return operation.cancel(); });
        dropRest();
    }
}

void BackgroundRun::answered(Call& call) noexcept
{
    Rest rest; // destroyed without the mutex
    const Inside inside(core_.port);
    if (operation() == nullptr || &operation()->call() != &call || call.mode == Call::Mode::abandoned) {
        return;
    }
    if (!awaits_) { // the answer to a request that another thread queued may come before look()
        step([](Operation& operation) { return operation.look(); });
    }
    if (awaits_) {
        step([&call](Operation& operation) { return operation.answered(call.outcome); });
    }
    rest = std::exchange(rest_, {});
}

/// Lets the operation, if it is not over, take a step, and does what it asks for next.
template <class Step>
void BackgroundRun::step(Step next)
{
    try {
        if (Operation* const current = operation()) {
            act(next(*current));
        }
    } catch (const std::bad_alloc&) {
        fail();
    }
}

void BackgroundRun::act(const WaitStep& next)
{
    awaits_ = next.kind == WaitStep::Kind::awaitAnswer;
    switch (next.kind) {
    case WaitStep::Kind::awaitAnswer:
    case WaitStep::Kind::sleep:
        return core_.wakeAt(next.until, *this);
    case WaitStep::Kind::askPolicy:
        core_.runs.remove(*this);
        return askPolicy(next);
    case WaitStep::Kind::done:
        core_.runs.remove(*this);
        rest_ = finish();
    }
}

/// Asks the policy soon, without the mutex.
void BackgroundRun::askPolicy(const WaitStep& question)
{
    core_.port.post([self = keep(), question, random = Random(core_.random.next())]() mutable {
        const auto answer = pauseOf(*question.order->retry, question.refusals, random, question.order->thrown);
        Rest rest;
        const Inside inside(self->core_.port);
        self->step([&answer](Operation& operation) { return operation.paused(answer); });
        rest = std::exchange(self->rest_, {});
    });
}

void BackgroundRun::fail() noexcept
{
    awaits_ = false;
    core_.runs.remove(*this);
    try {
        if (Operation* const current = operation()) {
            (void)current->cancel();
        }
    } catch (const std::bad_alloc&) { // what it may leave ends with its lease
    }
    rest_ = failed();
}

void BackgroundRun::drop()
{
    fail();
    dropRest();
}

/// Destroys what is left over, soon.
void BackgroundRun::dropRest()
{
    if (rest_.hold != nullptr || rest_.named != nullptr || rest_.self != nullptr) {
        core_.port.post([rest = std::exchange(rest_, {})]() mutable { rest = {}; });
    }
}

} // namespace redislock::detail
