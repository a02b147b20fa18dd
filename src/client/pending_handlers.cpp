#include "client/pending_handlers.hpp"

#include "values/immortal.hpp"
#include "values/system/process.hpp"

#include <utility>

namespace redislock::detail {

namespace {

/// A service that ends with its context, and so hears of the context's end.
class ContextService final : public boost::asio::execution_context::service {
public:
    /// Asio asks for an id of the service: made when it is first asked for, which may be before main().
    struct Id {
        operator const boost::asio::execution_context::id&() const
        {
            static const Immortal<boost::asio::execution_context::id> made;
            return made.get();
        }
    };
    static constexpr Id id{};

    explicit ContextService(boost::asio::execution_context& context)
        : service(context), handlers(std::make_shared<PendingHandlers>())
    {
    }
    ~ContextService() override { handlers->end(); } // for a service that was made while its context ended

    const std::shared_ptr<PendingHandlers> handlers;

private:
    void shutdown() override { handlers->end(); }
};

} // namespace

std::shared_ptr<PendingHandlers> PendingHandlers::of(boost::asio::execution_context& context)
{
    return boost::asio::use_service<ContextService>(context).handlers;
}

PendingHandlers::PendingHandlers() : generation_(forkGeneration()) {}

bool PendingHandlers::isForked() const noexcept
{
    return forkGeneration() != generation_;
}

void PendingHandlers::add(const std::shared_ptr<PendingHandler>& handler)
{
    if (isForked()) {
        return; // a thread of the parent may hold the mutex; in a child no call lasts
    }
    handler->others_ = shared_from_this();
    {
        const std::lock_guard lock(mutex_);
        if (!ended_) {
            handler->self_ = handler;
            handler->next_ = first_;
            if (first_ != nullptr) {
                first_->previous_ = handler.get();
            }
            first_ = handler.get();
            return;
        }
    }
    abandon(*handler);
}

bool PendingHandlers::claim(PendingHandler& handler) noexcept
{
    if (isForked()) {
        return false; // it is a copy of the parent's call, and ends with its context
    }
    const std::lock_guard lock(mutex_);
    if (ended_) {
        return false;
    }
    handler.claimedBy_ = currentThread();
    return true;
}

void PendingHandlers::finish(PendingHandler& handler) noexcept
{
    std::shared_ptr<PendingHandler> last; // destroyed after the mutex is unlocked
    const std::lock_guard lock(mutex_);
    last = std::move(handler.self_);
    unlink(handler);
    if (ended_) {
        finished_.notify_all();
    }
}

void PendingHandlers::unlink(PendingHandler& handler) noexcept
{
    (handler.previous_ != nullptr ? handler.previous_->next_ : first_) = handler.next_;
    if (handler.next_ != nullptr) {
        handler.next_->previous_ = handler.previous_;
    }
    handler.next_ = handler.previous_ = nullptr;
}

/// No mutex is held: a handler's destructor may do anything, even begin and end other calls.
void PendingHandlers::abandon(PendingHandler& handler) noexcept
{
    handler.destroy();
    const auto cancel = std::exchange(handler.cancel, nullptr);
    if (cancel && !isForked()) { // the call belongs to the parent
        try {
            cancel();
        } catch (...) { // out of memory: the call goes on to its own end
        }
    }
}

/// Whether another thread is ending a call. A thread that ends the context in a handler does not wait for itself.
bool PendingHandlers::isBusyElsewhere() const noexcept
{
    for (const PendingHandler* each = first_; each != nullptr; each = each->next_) {
        if (each->claimedBy_ != currentThread()) {
            return true;
        }
    }
    return false;
}

void PendingHandlers::end() noexcept
{
    const Uncancelled held;
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!isForked()) {
        lock.lock();
    } else if (!lock.try_lock()) {
        return; // a thread of the parent held it
    }
    ended_ = true;
    PendingHandler* left = nullptr;
    for (PendingHandler* each = first_; each != nullptr;) {
        PendingHandler* const next = each->next_;
        if (each->claimedBy_ == 0) {
            unlink(*each);
            each->next_ = std::exchange(left, each);
        }
        each = next;
    }
    lock.unlock();
    while (left != nullptr) {
        const auto handler = std::move(left->self_);
        left = left->next_;
        abandon(*handler);
    }
    if (!isForked()) {
        lock.lock();
        finished_.wait(lock, [this] { return !isBusyElsewhere(); });
    }
}

Claim::Claim(PendingHandler& handler) noexcept
    : handler_(handler), isMine_(handler.others_ == nullptr || handler.others_->claim(handler))
{
}

Claim::~Claim()
{
    if (isMine_ && handler_.others_ != nullptr) {
        handler_.others_->finish(handler_);
    }
}

} // namespace redislock::detail
