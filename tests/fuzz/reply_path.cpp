// Everything that a server can send: bytes, cut anywhere, become replies, then answers, then the actions of a machine.
//
// An input is one byte that chooses the listener, one byte that chooses how the bytes are cut, and the bytes.
#include "fuzz/machine_checks.hpp"
#include "link/cluster/cluster_table.hpp"
#include "link/connect/handshake_machine.hpp"
#include "link/request/channels.hpp"
#include "values/printable.hpp"

#include <array>
#include <string>

namespace redislock::test {
namespace {

void acquire(Exchange& exchange, std::uint8_t how)
{
    detail::AcquireMachine::Settings settings;
    settings.lease = how % 2 == 0 ? 30s : 20ms; // the short lease is over before many answers come
    settings.wait = how / 2 % 3 == 0 ? Wait(0ms) : how / 2 % 3 == 1 ? Wait(700ms) : waitForever;
    const auto level = how / 6 % 2 == 1 ? detail::Level::nested : detail::Level::outermost;
    if (level == detail::Level::nested) {
        settings.holdDeadline = exchange.now + 900ms;
    }
    checkAcquire(exchange, settings, how / 12 % 2 == 1 ? detail::Tokens::given : detail::Tokens::none, level);
}

void release(Exchange& exchange, std::uint8_t how)
{
    using detail::Level;
    checkRelease(exchange, {.validUntil = exchange.now + (how % 2 == 0 ? 30s : 30ms),
                            .giveUpAfter = how / 2 % 2 == 0 ? TimePoint::max() : exchange.now + 10s,
                            .level = how / 4 % 2 == 0 ? Level::outermost : Level::nested,
                            .asker = how / 8 % 2 == 0 ? detail::Asker::caller : detail::Asker::background});
}

/// The handshake of a connection.
void connect(ReplyStream& stream, std::uint8_t how)
{
    using Machine = detail::HandshakeMachine;
    detail::Handshake handshake;
    handshake.password = how % 2 == 0 ? "" : "secret";
    handshake.username = how / 2 % 2 == 0 || handshake.password.empty() ? "" : "user";
    handshake.database = how / 4 % 2 == 0 ? 0 : 3;
    handshake.clientName = how / 8 % 2 == 0 ? "" : "name";
    Machine machine(handshake);
    auto action = machine.resume(Machine::Opened{});
    std::size_t due = 0; // answers
    Reply reply;
    for (;;) {
        if (const auto* say = std::get_if<Machine::Say>(&action)) {
            require(due == 0, "nothing more is said before all is answered");
            due = say->commands.size();
        } else if (!std::holds_alternative<Machine::Listen>(action)) {
            break;
        }
        require(due > 0, "one answer each");
        require(machine.awaitsLast() == (due == 1), "the last answer is known");
        --due;
        switch (stream.next(reply)) {
        case ReplyStream::Status::reply:
            action = machine.resume(reply);
            break;
        case ReplyStream::Status::brokenConnection:
            action = machine.resume(Machine::Garbled{});
            break;
        case ReplyStream::Status::end:
            action = machine.resume(Machine::Closed{});
            break;
        }
    }
    const bool alive = std::holds_alternative<detail::Done<std::monostate>>(action);
    require(alive || std::holds_alternative<detail::Done<detail::Fault>>(action), "a handshake ends");
    const bool isCluster = machine.warning() != nullptr && reply.kind == Reply::Kind::array;
    require(!alive || (reply.kind == Reply::Kind::status && reply.text == "PONG") || reply.isError() || isCluster,
            "what does not answer PING is no Redis");
    require(machine.state() == Machine::State::done, "a handshake ends");
}

/// The connection for notifications.
void listen(ReplyStream& stream)
{
    const std::array<std::string, 3> channels{"redisson_lock__channel:{a}", "b", std::string("c\0d", 3)};
    detail::SubscriptionTable<int> table;
    for (int i = 0; i < 3; ++i) {
        table.want(channels.at(static_cast<std::size_t>(i)), i);
    }
    const auto subscribe = [&] {
        for (const auto& channel : table.connected()) {
            table.sent(channel);
        }
        table.sent({}); // a PING
    };
    subscribe();
    Reply frame;
    for (auto status = stream.next(frame); status != ReplyStream::Status::end; status = stream.next(frame)) {
        using Kind = detail::SubscriptionTable<int>::Incoming::Kind;
        const auto unanswered = table.unanswered();
        const auto incoming =
            status == ReplyStream::Status::reply ? table.received(frame) : decltype(table)::Incoming{Kind::unexpected};
        const bool counted = incoming.kind == Kind::confirmed || incoming.kind == Kind::refused;
        require(!counted || table.unanswered() + 1 == unanswered, "an answer belongs to one request");
        for (const int listener : incoming.listeners) {
            require(listener >= 0 && listener < 3, "a listener");
        }
        require(table.size() == channels.size(), "no server ends a wish");
        if (incoming.kind == Kind::unexpected) {
            subscribe();
        }
    }
}

void show(ReplyStream& stream)
{
    Reply reply;
    for (auto status = stream.next(reply); status != ReplyStream::Status::end; status = stream.next(reply)) {
        const auto shown = detail::printable(reply.text);
        require(shown.size() <= 80, "a message is short");
        require(std::all_of(shown.begin(), shown.end(), [](char c) { return c >= ' ' && c <= '~'; }), "and printable");
        (void)detail::classify(reply.text);
        (void)detail::Redirection::from(reply.text);
        if (const auto table = detail::clusterTableOf(reply)) {
            for (const auto& range : table->ranges) {
                require(range.last < detail::slotCount && range.node < table->nodes.size(), "a table is whole");
            }
        }
    }
}

} // namespace
} // namespace redislock::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace redislock::test;
    Input input(data, size);
    const auto choice = input.byte();
    const auto how = static_cast<std::uint8_t>(choice / 8);
    const auto seed = input.byte();
    Exchange exchange(input.rest(), seed);
    ReplyStream stream(input.rest(), seed);
    switch (choice % 8) {
    case 0:
    case 1:
        acquire(exchange, static_cast<std::uint8_t>(how * 2 + choice % 2));
        break;
    case 2:
        release(exchange, how);
        break;
    case 3:
        checkRenewal(exchange);
        break;
    case 4:
        checkQuery(exchange);
        break;
    case 5:
        connect(stream, how);
        break;
    case 6:
        listen(stream);
        break;
    default:
        show(stream);
        break;
    }
    return 0;
}
