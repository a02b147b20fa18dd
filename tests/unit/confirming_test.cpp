// What a core sends to have grants confirmed by replicas, and what it makes of the answers.
#include "core/core.hpp"
#include "link/request/calls.hpp"
#include "support/replies.hpp"
#include "unit/keeping_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::arrayReply;
using test::errorReply;
using test::numberReply;
using test::textReply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Packet {
    std::shared_ptr<RenewalCall> renewal;
    std::shared_ptr<Call> wait;

    [[nodiscard]] std::vector<std::string> names() const
    {
        std::vector<std::string> all;
        for (const auto& item : renewal->items()) {
            all.push_back(item.hold->lock->name);
        }
        return all;
    }
    [[nodiscard]] std::string waitText() const
    {
        std::string text;
        wait->encode(text, Call::Form::bySha);
        return text;
    }
    void renewed(const Reply& reply) const { end(*renewal, reply); }
    void renewed(const char* each) const { end(*renewal, textReply(each)); }
    void waited(const Reply& reply) const { end(*wait, reply); }
    void waited(std::int64_t replicas) const { end(*wait, numberReply(replicas)); }
    static void end(Call& half, const Reply& reply)
    {
        half.outcome.replied = true;
        half.reply = reply;
        half.finished();
    }
    void fail(const Fault& fault) const
    {
        for (Call* half : {static_cast<Call*>(renewal.get()), wait.get()}) {
            half->outcome = {false, fault};
            half->finished();
        }
    }
};

/// Keeps the packets.
class PacketPort final : public KeepingPort {
public:
    bool submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind) override
    {
        if (lane == Lane::confirming) {
            call->sentAt = behind->sentAt = time;
            if (!hasMemory) {
                throw std::bad_alloc();
            }
            last = {std::dynamic_pointer_cast<RenewalCall>(call), std::move(behind)};
            packets.push_back(last);
            return isOpen;
        }
        return KeepingPort::submit(lane, std::move(call), std::move(behind));
    }

    void post(std::function<void()> what) override { posted.push_back(std::move(what)); }

    std::vector<std::function<void()>> posted;
    std::vector<Packet> packets;
    Packet last;
    bool isOpen = true;
    bool hasMemory = true;
};

class ConfirmingGrants : public ::testing::Test {
protected:
    using State = Confirmation::State;

    ~ConfirmingGrants() override
    {
        for (auto& each : asked) {
            core->confirming.withdraw(each);
        }
        if (port->last.wait != nullptr) {
            port->last.fail({Failure::fatal, Errc::shutdown}); // it may be under way
        }
        asked.clear();
        port->packets.clear(); // keep the holds, and these the port
        port->last = {};
    }

    Confirmation& ask(const std::string& name, const Durability& wanted = Durability::replicas(1, 300ms),
                      LockKind kind = LockKind::redisLock)
    {
        Confirmation& made = asked.emplace_back();
        made.hold = core->takeHold(*NamedLock::of(port, *core, KindTraits::of(kind), name), 1, Lane::commands);
        made.until = port->time + wanted.within;
        made.wanted = wanted;
        made.lease = minLease;
        made.call = &sleeper;
        core->confirming.ask(made);
        return made;
    }
    std::vector<Packet> packets()
    {
        for (const auto& each : std::exchange(port->posted, {})) {
            each();
        }
        return std::exchange(port->packets, {});
    }
    Packet packet()
    {
        auto all = packets();
        EXPECT_EQ(all.size(), 1U);
        return all.at(0);
    }

    std::shared_ptr<PacketPort> port = std::make_shared<PacketPort>();
    Config config;
    std::unique_ptr<Core> core = std::make_unique<Core>(*port, config, "client", 1);
    PingCall sleeper;
    std::deque<Confirmation> asked;
};

TEST_F(ConfirmingGrants, AreAskedAboutInOnePacketAtATime)
{
    auto& first = ask("1");
    const Packet alone = packet();
    EXPECT_THAT(alone.names(), ElementsAre("1"));
    EXPECT_EQ(alone.waitText(), "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$3\r\n300\r\n");
    auto& second = ask("2");
    auto& third = ask("3");
    EXPECT_THAT(packets(), IsEmpty());
    alone.renewed("1");
    EXPECT_EQ(first.state, State::asked);
    port->time += 5ms;
    alone.waited(1);
    EXPECT_EQ(first.state, State::confirmed);
    EXPECT_EQ(port->woken, 1);
    const Packet both = packet();
    EXPECT_THAT(both.names(), ElementsAre("2", "3"));
    EXPECT_THAT(both.waitText(), HasSubstr("295"));
    both.renewed("11");
    both.waited(2);
    EXPECT_EQ(second.state, State::confirmed);
    EXPECT_EQ(third.state, State::confirmed);
    EXPECT_THAT(packets(), IsEmpty());
}

TEST_F(ConfirmingGrants, OfAnotherSlotDoNotWaitForASlowNode)
{
    config.cluster.emplace_back();
    auto& slow = ask("{a}1");
    const Packet toSlow = packet();
    auto& other = ask("{b}1");
    ask("{a}2");
    ask("{b}2");
    const Packet toOther = packet();
    EXPECT_THAT(toOther.names(), ElementsAre("{b}1", "{b}2"));
    toOther.renewed("11");
    toOther.waited(1);
    EXPECT_EQ(other.state, State::confirmed);
    EXPECT_EQ(slow.state, State::asked);
    EXPECT_THAT(packets(), IsEmpty());
    toSlow.renewed("1");
    toSlow.waited(1);
    EXPECT_EQ(slow.state, State::confirmed);
    EXPECT_THAT(packet().names(), ElementsAre("{a}2"));
}

TEST_F(ConfirmingGrants, DoNotWaitForAPacketThatFoundNoMemory)
{
    auto& lost = ask("1");
    port->hasMemory = false;
    EXPECT_THROW(packets(), std::bad_alloc);
    port->hasMemory = true;
    auto& later = ask("2");
    const Packet next = packet();
    EXPECT_THAT(next.names(), ElementsAre("2"));
    next.renewed("1");
    next.waited(1);
    EXPECT_EQ(later.state, State::confirmed);
    EXPECT_EQ(lost.state, State::asked);
}

TEST_F(ConfirmingGrants, OfOneDurabilityOrKindGoTogether)
{
    ask("1");
    const Packet first = packet();
    ask("2", Durability::replicas(2, 300ms));
    ask("3", Durability::replicas(1, 300ms), LockKind::readLock);
    ask("4", Durability::disk(1, 300ms));
    ask("5", Durability::replicas(2, 200ms));
    first.fail({Failure::lostReply, Errc::unreachable});
    const Packet twos = packet();
    EXPECT_THAT(twos.names(), ElementsAre("2", "5"));
    EXPECT_THAT(twos.waitText(), HasSubstr("200"));
    twos.renewed("11");
    twos.waited(2);
    const Packet reader = packet();
    EXPECT_THAT(reader.names(), ElementsAre("3"));
    reader.renewed("1");
    reader.waited(1);
    const Packet onDisk = packet();
    EXPECT_THAT(onDisk.names(), ElementsAre("4"));
    EXPECT_EQ(onDisk.waitText(), "*4\r\n$7\r\nWAITAOF\r\n$1\r\n1\r\n$1\r\n1\r\n$3\r\n300\r\n");
    onDisk.renewed("1");
    onDisk.waited(arrayReply({numberReply(1), numberReply(1)}));
    EXPECT_EQ(asked[3].state, State::confirmed);
    EXPECT_THAT(packet().names(), ElementsAre("1")) << "its answer was lost: it is asked about again";
    EXPECT_EQ(asked[0].state, State::asked);
}

TEST_F(ConfirmingGrants, AreAskedAboutAgainIfTheTimeWasThatOfAnother)
{
    auto& hurried = ask("1", Durability::replicas(1, 100ms));
    packet().fail({Failure::lostReply, Errc::unreachable});
    auto& patient = ask("2", Durability::replicas(1, 300ms));
    const Packet alone = packet();
    alone.renewed("1");
    port->time += 100ms;
    alone.waited(0);
    EXPECT_EQ(hurried.state, State::refused);
    EXPECT_EQ(hurried.why, Errc::notDurable);
    const Packet again = packet();
    EXPECT_THAT(again.names(), ElementsAre("2"));
    again.renewed("1");
    EXPECT_EQ(patient.state, State::asked);
    again.waited(0); // before its time, as from a proxy
    EXPECT_EQ(patient.state, State::refused);
    EXPECT_THAT(packets(), IsEmpty());
}

TEST_F(ConfirmingGrants, AreNotConfirmedByAWaitThatCameBeforeTheRenewal)
{
    auto& asks = ask("1");
    const Packet first = packet();
    first.waited(1); // the server did not know the script: the renewal was sent once more
    EXPECT_EQ(asks.state, State::asked);
    first.renewed("1");
    EXPECT_EQ(asks.state, State::asked);
    const Packet second = packet();
    second.renewed("1");
    second.waited(1);
    EXPECT_EQ(asks.state, State::confirmed);
}

TEST_F(ConfirmingGrants, AreConfirmedOnlyWhereTheirRenewalWas)
{
    ask("0");
    const Packet before = packet();
    auto& gone = ask("1");
    auto& held = ask("2");
    auto& other = ask("3");
    auto& withdrawn = ask("4");
    before.fail({Failure::fatal, Errc::authFailed});
    EXPECT_EQ(asked[0].why, Errc::authFailed);
    const Packet all = packet();
    core->confirming.withdraw(withdrawn);
    all.renewed("01w1");
    all.waited(3);
    EXPECT_EQ(gone.state, State::refused);
    EXPECT_EQ(gone.why, Errc::notDurable);
    EXPECT_EQ(held.state, State::confirmed);
    EXPECT_EQ(other.why, Errc::wrongType);
    EXPECT_EQ(withdrawn.state, State::none);
}

TEST_F(ConfirmingGrants, AreAskedAboutOneByOneIfTheRenewalOfSeveralIsDenied)
{
    ask("0");
    const Packet before = packet();
    auto& denied = ask("1");
    auto& allowed = ask("2");
    before.renewed("1");
    before.waited(1);
    const Packet both = packet();
    both.renewed(errorReply("NOPERM this user has no permissions to access one of the keys used as arguments"));
    both.waited(1);
    const Packet first = packet();
    EXPECT_THAT(first.names(), ElementsAre("1"));
    first.renewed(errorReply("NOPERM this user has no permissions to access one of the keys used as arguments"));
    first.waited(1);
    EXPECT_EQ(denied.why, Cause::keyDenied);
    const Packet second = packet();
    EXPECT_THAT(second.names(), ElementsAre("2"));
    second.renewed("1");
    second.waited(1);
    EXPECT_EQ(allowed.state, State::confirmed);
}

TEST_F(ConfirmingGrants, AreRefusedForGoodByAnErrorThatStays)
{
    const std::pair<const char*, Reason> answers[] = {
        {"NOPERM this user has no permissions to run the 'wait' command", Cause::commandDenied},
        {"ERR unknown command 'WAITAOF'", Cause::unknownCommand},
        {"ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.", Cause::noAppendOnlyFile},
        {"ERR a proxy knows no such thing", Errc::serverRefused},
        {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
         Errc::notDurable},
        {"ERR WAIT cannot be used with replica instances. Please also note that", Errc::notDurable},
        {"LOADING Redis is loading the dataset in memory", Errc::notDurable},
    };
    for (const auto& [text, why] : answers) {
        auto& asks = ask(text);
        const Packet only = packet();
        only.renewed("1");
        only.waited(errorReply(text));
        EXPECT_EQ(asks.state, State::refused) << text;
        EXPECT_EQ(asks.why, why) << text;
    }
    auto& lost = ask("lost");
    const Packet half = packet();
    half.waited(errorReply("UNBLOCKED force unblock from blocking operation"));
    half.renewal->outcome = {false, {Failure::lostReply, Errc::unreachable}}; // it was sent once more, as a text
    half.renewal->finished();
    EXPECT_EQ(lost.why, Errc::notDurable);
    auto& asks = ask("text");
    const Packet only = packet();
    only.renewed("1");
    only.waited(textReply("1"));
    EXPECT_EQ(asks.why, Errc::badReply);
}

TEST_F(ConfirmingGrants, AreRefusedAfterTheClientsEnd)
{
    port->isOpen = false;
    const auto& asks = ask("1");
    (void)packets();
    EXPECT_EQ(asks.why, Errc::shutdown);
}

} // namespace
} // namespace redislock::detail
