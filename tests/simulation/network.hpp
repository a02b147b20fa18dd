/// @file
/// The network between clients and the server.
#pragma once

#include "simulation/faults.hpp"
#include "simulation/host.hpp"
#include "simulation/model_server.hpp"
#include "simulation/safety_checker.hpp"
#include "simulation/trace.hpp"
#include "simulation/witness.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redislock::simulation {

/// What a connection is for.
enum class Purpose : std::uint8_t { commands, renewals, notifications, confirmations };

/// A client's end of connections.
class Endpoint {
public:
    virtual ~Endpoint() = default;
    virtual void opened(LinkId link) = 0;
    virtual void connectFailed() = 0;
    virtual void received(Reply reply) = 0;
    /// The other side, or something between, ended the connection.
    virtual void closed() = 0;
    [[nodiscard]] virtual std::size_t unanswered() const = 0;
};

/// Carries requests and replies, each connection in order, with the delays and losses of a plan. Requests under way
/// when a connection ends may still be executed.
class Network {
public:
    /// Learns of every fault that hit. The world implements it, since it knows the machines.
    class Observer {
    public:
        virtual ~Observer() = default;
        virtual void hit(Fault fault, const Host& host, Purpose purpose, std::optional<Situation> situation) = 0;
        virtual void executed(const Request& request, const Reply& reply) = 0;
        /// A server that was the master until the last fail-over has executed a request.
        virtual void executedByFormer(const Request& /*request*/) {}
        virtual void opened(const Host& /*host*/, Purpose /*purpose*/) {}
        /// A connection waits for replicas, until answerWait().
        virtual void waits(LinkId /*link*/, const Request& /*request*/, bool /*atFormer*/) {}
    };

    Network(Scheduler& scheduler, Random& chance, const FaultPlan& plan, Witness& witness, Trace& trace,
            Observer& observer)
        : scheduler_(scheduler), chance_(chance), plan_(plan), witness_(witness), trace_(trace), observer_(observer)
    {
    }
    void attach(ModelServer& server) noexcept { server_ = &server; }

    // For clients.
    void connect(const std::shared_ptr<Host>& host, Endpoint& endpoint, Purpose purpose, TimePoint notBefore,
                 TimePoint::duration timeout);
    void send(LinkId link, Request sent, std::optional<Situation> situation);
    /// The client closes the connection; requests that it has sent may still arrive.
    void close(LinkId link);

    // For the server.
    void push(LinkId link, const Reply& message);
    void answerWait(LinkId link, const Reply& reply);

    // For the world.
    void setFaults(bool on) noexcept { faults_ = on; }
    /// From now on no message of publish/subscribe arrives.
    void setSilent(bool on) noexcept { silent_ = on; }
    void cutOne();
    /// Another server is the master, and gets all new connections; the present ones stay where they are.
    void failOver(ModelServer& former) noexcept;
    void cutFormer() { cutAll(true); }
    void cutAll(bool onlyFormer = false);
    /// A process is gone; after a moment its connections end too.
    void drop(const Host& host);
    void pauseServerUntil(VirtualTime end) noexcept { serverProcess_.pauseUntil(end); }
    [[nodiscard]] bool isServerPaused() const noexcept { return serverProcess_.isPaused(); }
    void setDownUntil(VirtualTime end) noexcept { downUntil_ = std::max(downUntil_, end); }
    [[nodiscard]] bool isDown() const noexcept { return scheduler_.now() < downUntil_; }

private:
    struct Line {
        std::shared_ptr<Host> host;
        Endpoint* endpoint = nullptr; ///< null: the client has closed it
        Purpose purpose = Purpose::commands;
        std::uint64_t term = 0; ///< after how many fail-overs it was made
        bool openAtServer = true;
        bool waits = false;
        std::vector<Task> behind{}; ///< what came meanwhile
        bool requestsVanish = false;
        bool repliesVanish = false;
        VirtualTime lastRequest{0};
        VirtualTime lastReply{0};
    };

    bool hits(Fault fault, const Line& link, std::optional<Situation> situation);
    VirtualTime latency();
    VirtualTime late();
    void attempt(const std::shared_ptr<Host>& host, Endpoint& endpoint, Purpose purpose, TimePoint::duration timeout);
    [[nodiscard]] ModelServer& serverOf(const Line& link) noexcept { return link.term == term_ ? *server_ : *former_; }
    void deliver(LinkId id, const std::shared_ptr<const Request>& request, std::optional<Situation> situation);
    void execute(const Request& request, LinkId from, std::optional<Situation> situation);
    void answer(LinkId id, const Reply& reply, std::optional<Situation> situation);
    void receive(LinkId id, const Reply& reply, std::optional<Situation> situation);
    void endAtServer(LinkId id);
    void cut(LinkId id);

    Scheduler& scheduler_;
    Random& chance_;
    const FaultPlan& plan_;
    Witness& witness_;
    Trace& trace_;
    Observer& observer_;
    ModelServer* server_ = nullptr;
    ModelServer* former_ = nullptr;
    std::uint64_t term_ = 0;
    std::map<LinkId, Line> links_;
    LinkId lastLink_ = 0;
    bool faults_ = true;
    bool silent_ = false;
    Pausable serverProcess_{scheduler_};
    VirtualTime downUntil_{0};
};

} // namespace redislock::simulation
