/// @file
/// Which server a client talks to.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

class Engine;

/// The run id of a client's server, as far as the server told it: two clients with the same run id are on one server,
/// whatever the addresses. **Thread safety**: safe.
class ServerId {
public:
    enum class State {
        fresh,  ///< not asked yet
        asking, ///< the question is under way
        failed, ///< no answer; may be asked again
        known,
        untold, ///< the user may not ask, or the server does not say
    };

    [[nodiscard]] State state() const;
    /// The run id; empty if not known.
    [[nodiscard]] std::string text() const;

    /// Asks, if that is useful. @param then called once when the question is over, on any thread, perhaps in here.
    void ask(const std::shared_ptr<Engine>& engine, std::function<void()> then);

    /// The run id in the answer to INFO; empty if there is none.
    static std::string from(std::string_view info);

private:
    mutable std::mutex mutex_;
    State state_ = State::fresh;
    std::string text_;
    std::vector<std::function<void()>> waiting_;
};

} // namespace redislock::detail
