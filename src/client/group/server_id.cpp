#include "client/group/server_id.hpp"

#include "client/async_operation.hpp"
#include "client/engine.hpp"
#include "core/operation/query_flow.hpp"
#include "link/request/calls.hpp"
#include "wire/info.hpp"

#include <utility>

namespace redislock::detail {

namespace {

/// Asks the server for its run id. @param answered called once, on the background thread, or in here after the client's
/// end.
void askRunId(Engine& engine, const std::function<void(std::error_code, std::string)>& answered)
{
    if (engine.asyncRefusal()) {
        return answered(Errc::shutdown, {});
    }
    launch<QueryFlow>(
        engine, {}, Handler<std::string>(answered),
        [](std::optional<QueryFlow>& flow, BackgroundRun* run) {
            flow.emplace(run->core(), std::make_shared<CommandCall>(std::vector<std::string>{"INFO", "server"}), run);
        },
        [](std::optional<QueryFlow>& flow, bool cancelled) {
            const auto ec = flow->error();
            return [ec = handlersCode(ec, cancelled), id = ec ? std::string() : ServerId::from(flow->reply().text)](
                       auto& completion) { completion(ec, id); };
        });
}

} // namespace

std::string ServerId::from(std::string_view info)
{
    return std::string(infoField(info, "run_id"));
}

ServerId::State ServerId::state() const
{
    const std::lock_guard lock(mutex_);
    return state_;
}

std::string ServerId::text() const
{
    const std::lock_guard lock(mutex_);
    return text_;
}

void ServerId::ask(const std::shared_ptr<Engine>& engine, std::function<void()> then)
{
    {
        const std::lock_guard lock(mutex_);
        if (state_ != State::known && state_ != State::untold) {
            waiting_.push_back(std::move(then));
            if (std::exchange(state_, State::asking) == State::asking) {
                return;
            }
        }
    }
    if (then) {
        return then();
    }
    const auto answered = [this, engine](std::error_code ec, std::string id) {
        std::vector<std::function<void()>> waiting;
        {
            const std::lock_guard lock(mutex_);
            const bool again = ec == Errc::unreachable || ec == Errc::serverRefused || ec == Errc::shutdown;
            state_ = again ? State::failed : id.empty() ? State::untold : State::known;
            text_ = std::move(id);
            waiting.swap(waiting_);
        }
        for (const auto& each : waiting) {
            each();
        }
    };
    try {
        askRunId(*engine, answered);
    } catch (...) {
        answered(Errc::unreachable, {});
    }
}

} // namespace redislock::detail
