/// @file
/// What becomes of handlers whose execution context ends before their calls do.
#pragma once

#include <boost/asio/execution_context.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace redislock::detail {

class PendingHandlers;

/// A handler that waits for the end of its call. Two may want it: the call, to have it run, and the context, to destroy
/// it. Whichever comes first gets it.
class PendingHandler {
public:
    PendingHandler() = default;
    PendingHandler(const PendingHandler&) = delete;
    PendingHandler& operator=(const PendingHandler&) = delete;
    virtual ~PendingHandler() = default;

    /// Called when the context was first: then nobody waits for the call any more.
    std::function<void()> cancel;

private:
    friend class PendingHandlers;
    friend class Claim;

    /// Destroys everything that lives no longer than the context.
    virtual void destroy() noexcept = 0;

    std::shared_ptr<PendingHandlers> others_; ///< all handlers of its context; null: it has no context
    // guarded by their mutex
    std::shared_ptr<PendingHandler> self_; ///< set while it is one of them
    PendingHandler* next_ = nullptr;
    PendingHandler* previous_ = nullptr;
    std::uint64_t claimedBy_ = 0; ///< the thread that ends the call
};

/// The waiting handlers of one context. The context's last act is to call end(). Any thread.
class PendingHandlers : public std::enable_shared_from_this<PendingHandlers> {
public:
    /// The handlers of a context, which must be alive.
    static std::shared_ptr<PendingHandlers> of(boost::asio::execution_context& context);

    PendingHandlers();

    /// Makes a handler end with the context: at once, if the context is ending.
    void add(const std::shared_ptr<PendingHandler>& handler);
    /// The context ends: destroys the handlers that are left, and returns when no other thread is busy with one.
    void end() noexcept;

private:
    friend class Claim;

    bool claim(PendingHandler& handler) noexcept;
    void finish(PendingHandler& handler) noexcept;
    void unlink(PendingHandler& handler) noexcept;
    void abandon(PendingHandler& handler) noexcept;
    [[nodiscard]] bool isForked() const noexcept;
    [[nodiscard]] bool isBusyElsewhere() const noexcept;

    const std::uint32_t generation_;
    std::mutex mutex_;
    std::condition_variable finished_;
    PendingHandler* first_ = nullptr;
    bool ended_ = false; ///< handlers that are not claimed belong to the context
};

/// The right to use a handler at the end of its call. While the claim lasts, the context does not end on another
/// thread.
class Claim {
public:
    explicit Claim(PendingHandler& handler) noexcept;
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim();

    /// Whether the handler still exists.
    explicit operator bool() const noexcept { return isMine_; }

private:
    PendingHandler& handler_;
    const bool isMine_;
};

} // namespace redislock::detail
