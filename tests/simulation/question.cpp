// A question that may be asked again, as in src/runtime/query.cpp.
#include "simulation/operation.hpp"

#include <utility>

namespace redislock::simulation {

using detail::QueryMachine;

Question::Question(SimClient& client, NamedLock& named, detail::ScriptUse detail::KindTraits::*use,
                   std::vector<std::string> arguments)
    : Operation(client),
      command_(std::make_shared<Call>()),
      machine_(client.config().unreachableAfter),
      event_(detail::Start{now()})
{
    command_->request.run(named.traits(), use, named.name, std::move(arguments));
    command_->request.number = client.nextRequest();
    command_->situation = Situation::queryAsking;
}

std::optional<Situation> Question::situation() const
{
    switch (machine_.state()) {
    case QueryMachine::State::asking:
        return Situation::queryAsking;
    case QueryMachine::State::backingOff:
        return Situation::queryBackingOff;
    default:
        return std::nullopt;
    }
}

void Question::advance()
{
    while (!isDone()) {
        if (!event_) {
            if (machine_.state() == QueryMachine::State::asking) {
                if (!answered()) {
                    return;
                }
                event_ = eventOf<QueryMachine::Event>(*call_, now(), [&](const Reply&) -> QueryMachine::Event {
                    return detail::Replied<detail::Answered>{now(), call_->sentAt, {}};
                });
            } else if (now() < sleepUntil_) {
                return;
            } else {
                event_ = detail::TimerFired{now()};
            }
        }
        const auto action = machine_.resume(*std::exchange(event_, std::nullopt), client_.random());
        if (const auto* done = std::get_if<detail::Done<std::optional<Errc>>>(&action)) {
            error_ = done->result;
            finishOperation();
        } else if (const auto* request = std::get_if<detail::Send>(&action)) {
            send(command_, request->until);
        } else {
            sleepUntil_ = std::get<detail::SleepUntil>(action).until;
            alarm(sleepUntil_);
        }
    }
}

} // namespace redislock::simulation
