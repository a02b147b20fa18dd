#include "link/call_connection.hpp"

#include "wire/assert.hpp"
#include "wire/command.hpp"

#include <atomic>
#include <cstddef>
#include <utility>

namespace redislock::detail {

CallConnection::CallConnection(boost::asio::io_context& io, Connector& connector, std::chrono::milliseconds timeout,
                               std::uint64_t seed, std::function<void(bool, Reason)> report)
    : connection_(io, connector, *this, timeout, seed), report_(std::move(report))
{
}

/// A call in the queue of the other connection. It is that connection's, but the call itself stays here.
struct CallConnection::Lent final : Call {
    Lent(std::shared_ptr<Call> lent, std::function<void()> tell) : call(std::move(lent)), ring(std::move(tell))
    {
        mode = Mode::detached;
        isHurried = call->isHurried;
    }

    /// An answer to an abandoned one is expected all the same, but its call may be over.
    void encode(std::string& out, Form by) override
    {
        mode == Mode::abandoned ? appendCommand(out, {"PING"}) : call->encode(out, by);
    }
    [[nodiscard]] bool isWanted(TimePoint now) const noexcept override
    {
        return call->mode != Mode::abandoned && call->isWanted(now);
    }
    void finished() noexcept override
    {
        hasEnded = true;
        ring();
    }

    const std::shared_ptr<Call> call;
    const std::function<void()> ring;
    std::atomic<bool> hasEnded{false};
};

void CallConnection::lendTo(BlockingConnection& other, std::function<void()> ring)
{
    other_ = &other;
    ring_ = std::move(ring);
}

void CallConnection::lend(const std::shared_ptr<Call>& call)
{
    REDISLOCK_ASSERT(other_ != nullptr);
    lent_.push_back(std::make_shared<Lent>(call, ring_));
    try {
        (void)other_->enqueue(lent_.back()); // if it has been shut down, so will this be
    } catch (...) {
        lent_.pop_back();
        throw;
    }
}

void CallConnection::takeBack()
{
    while (!lent_.empty() && lent_.front()->hasEnded) {
        const auto lent = lent_.front();
        lent_.pop_front();
        std::swap(lent->call->reply, lent->reply);
        lent->call->sentAt = lent->sentAt;
        end(lent->call, lent->outcome);
    }
}

/// What needs no order, and the other connection has not answered, is asked again on this one.
void CallConnection::askAgain()
{
    for (std::size_t i = 0; i < lent_.size();) {
        const auto lent = lent_[i];
        if (lent->hasEnded || !lent->call->isInNoOrder()) {
            ++i;
            continue;
        }
        lent_.erase(lent_.begin() + static_cast<std::ptrdiff_t>(i));
        (void)other_->leave(*lent);
        end(lent->call, {false, {Failure::lostReply, Cause::silent}});
    }
}

Stream CallConnection::give()
{
    if (!connection_.isConnected() || !queue_.empty() || leaving_) {
        return {};
    }
    isAbsent_ = true;
    return Stream(connection_.take().release()); // whose calls wait, unlike those of Asio
}

void CallConnection::enqueue(std::shared_ptr<Call> call)
{
    call->form = Call::Form::bySha;
    if (closed_) {
        return end(std::move(call), {false, {Failure::fatal, Errc::shutdown}});
    }
    call->pending = true;
    if ((!lent_.empty() && !call->isInNoOrder()) || (isAbsent_ && queue_.empty() && other_->isConnected())) {
        return lend(call);
    }
    hurried_ = hurried_ || call->isHurried;
    if (takesRequests()) {
        call->encode(bytes_, call->form);
    }
    queue_.push(std::move(call));
}

bool CallConnection::withdraw(Call& call)
{
    return !takesRequests() && queue_.erase(call);
}

void CallConnection::flush()
{
    const bool hurried = std::exchange(hurried_, false);
    if (!lent_.empty()) {
        other_->flush();
    }
    if (!connection_.isConnected()) {
        if (needed()) {
            hurried ? connection_.hurry() : connection_.open();
        }
        return;
    }
    if (!leaving_ && queue_.unwritten() > 0) {
        if (queue_.unanswered() == 0 && !connection_.isSilent()) {
            return connection_.close({Failure::lostReply, Errc::badReply});
        }
        queue_.written(BootClock::now());
        connection_.send(bytes_); // if this fails, the connection ends, and with it what was to be sent
        bytes_.clear();
    }
}

void CallConnection::close()
{
    closed_ = true;
    connection_.end({Failure::fatal, Errc::shutdown});
    const Outcome ended{false, {Failure::fatal, Errc::shutdown}};
    while (auto call = queue_.abandon()) {
        end(std::move(call), ended);
    }
    takeBack();
    for (const auto& lent : std::exchange(lent_, {})) {
        end(lent->call, ended);
    }
}

void CallConnection::onConnected()
{
    report_(true, {});
    bytes_.clear();
    isAbsent_ = false;
    FinishedCalls unwanted;
    for (auto left = queue_.size(); left > 0; --left) { // each leaves the queue, and joins it again if still wanted
        Call& next = *queue_[0];
        const bool isWanted = next.isWanted(BootClock::now());
        if (isWanted) {
            next.encode(bytes_, next.form = Call::Form::bySha);
        }
        auto call = queue_.abandon();
        isWanted ? queue_.push(std::move(call))
                 : over(std::move(call), {false, {Failure::notConnected, connection_.absence()}}, unwanted);
    }
    flush();
    unwanted.tell();
    askAgain();
}

bool CallConnection::onReply(Reply& reply)
{
    auto call = queue_.answered();
    if (call == nullptr) {
        return false;
    }
    if (isDemotion(reply)) {
        leave();
    } else if (!reply.isError()) {
        connection_.served();
    }
    if (isNoScript(reply) && call->form == Call::Form::bySha && call->mode != Call::Mode::abandoned &&
        call->isWanted(BootClock::now())) {
        call->form = Call::Form::byText;
        queue_.push(call);
        if (!leaving_) {
            call->encode(bytes_, call->form); // if this fails, the call ends with the connection
        }
        flush();
    } else {
        connection_.noteReply(reply);
        std::swap(call->reply, reply);
        end(std::move(call), {true, {}});
    }
    if (leaving_ && queue_.unanswered() == 0) {
        connection_.close({Failure::demoted, Cause::readOnly});
    }
    return true;
}

/// Sends nothing more on this connection. The due answers come first, then the next connection is made.
void CallConnection::leave()
{
    if (!std::exchange(leaving_, true)) {
        connection_.demoted();
        bytes_.clear();
    }
}

void CallConnection::onDisconnected(Fault fault)
{
    report_(false, fault.error);
    bytes_.clear();
    leaving_ = false;
    FinishedCalls ended;
    // unwritten calls wait for the next connection, unless none could be made
    const bool wasConnected = fault.failure == Failure::lostReply || fault.failure == Failure::demoted;
    isAbsent_ = !wasConnected && !closed_;
    if (isAbsent_ && (!lent_.empty() || other_->isConnected())) {
        for (; !queue_.empty(); (void)queue_.abandon()) {
            lend(queue_[0]);
        }
        return other_->flush();
    }
    for (auto left = wasConnected ? queue_.unanswered() : queue_.size(); left > 0; --left) {
        over(queue_.abandon(), {false, fault}, ended);
    }
    ended.tell();
}

void CallConnection::end(std::shared_ptr<Call> call, Outcome outcome) noexcept
{
    FinishedCalls ended;
    over(std::move(call), outcome, ended);
    ended.tell();
}

void CallConnection::over(std::shared_ptr<Call> call, Outcome outcome, FinishedCalls& ended) noexcept
{
    call->pending = false;
    call->outcome = outcome;
    ended.add(std::move(call));
}

} // namespace redislock::detail
