/// @file
/// Starts the service, the workers and the buyers, and kills and stops them while they work.
#pragma once

#include "flash_sale/buyers.hpp"
#include "flash_sale/orders.hpp"
#include "flash_sale/sale.hpp"
#include "flash_sale/service.hpp"
#include "flash_sale/settings.hpp"
#include "flash_sale/worker.hpp"
#include "shared/workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace flash {

/// Thrown when the user wants the program to end.
struct Interrupted {};

/// The failures that were caused.
struct Done {
    int workersKilled = 0;  ///< while they had orders under way
    int workersStopped = 0; ///< the same, for longer than their lease
    int servicesKilled = 0;
};

/// A port of this machine that stays open from one service to the next.
class Listener {
public:
    Listener()
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const generic = reinterpret_cast<sockaddr*>(&address);
        if (socket_ < 0 || ::bind(socket_, generic, size) != 0 || ::listen(socket_, 1024) != 0 ||
            ::getsockname(socket_, generic, &size) != 0) {
            throw std::system_error(errno, std::generic_category(), "cannot listen on a port of this machine");
        }
        port_ = ntohs(address.sin_port);
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    ~Listener() { ::close(socket_); }

    [[nodiscard]] int socket() const noexcept { return socket_; }
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

private:
    int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::uint16_t port_ = 0;
};

/// Every process is a fork of this one, which has no other thread and no redislock::Client.
class Conductor {
public:
    Conductor(const Settings& settings, Sale& sale, Orders& orders)
        : settings_(settings), sale_(sale), orders_(orders), random_(settings.seed)
    {
        plan(Trouble::killWorker, settings.workerKills, 0.1, 0.5); // half of the time is when the stock is sold out
        plan(Trouble::stopWorker, settings.pauses, 0.2, 0.45);
        plan(Trouble::killService, settings.serviceKills, 0.2, 0.9);
        std::ranges::sort(events_, {}, &Event::at);
    }

    [[nodiscard]] std::string page() const { return fmt::format("http://127.0.0.1:{}/", listener_.port()); }

    /// Sells until every buyer has an answer and every admitted order was created, or until there is no more progress.
    Done run()
    {
        startService();
        for (int place = 0; place < settings_.workers; ++place) {
            workers_.push_back({});
            startWorker(place);
        }
        startLooker();
        const auto start = Clock::now();
        orders_.begins("opened");
        Processes buyers(settings_.buyerProcesses,
                         [&](int number) { buy(settings_, number, listener_.port(), start); });
        while (!haveEnded(buyers, pace)) {
            cause(start);
            watch();
        }
        const auto end = Clock::now() + std::chrono::seconds(30);
        while ((sale_.unfinished() > 0 || stopped_ >= 0) && Clock::now() < end) {
            cause(start);
            watch();
        }
        return done_;
    }

    /// Serves the page until whoever looks at it has seen the verdict.
    void showVerdict()
    {
        const auto end = Clock::now() + std::chrono::seconds(looker_ ? 60 : 1); // pages ask twice in a second
        while (Clock::now() < end && !(looker_ && haveEnded(*looker_))) {
            haveEnded(*service_, pace);
        }
        if (looker_ && !haveEnded(*looker_)) {
            throw std::runtime_error("the command that looks at the page does not end");
        }
    }

private:
    using Processes = example::Workers;
    enum class Trouble { killWorker, stopWorker, killService, resumeWorker };
    struct Event {
        Clock::duration at; ///< after the start
        Trouble trouble;
    };
    struct Place {
        std::unique_ptr<Processes> process;
        std::string name; ///< of the worker in that place
        int generation = 0;
    };

    static constexpr std::chrono::milliseconds pace{20};

    /// Some failures at random moments within a part of the sale.
    void plan(Trouble trouble, int times, double from, double to)
    {
        std::uniform_real_distribution<double> moment(from, to);
        for (int time = 0; time < times; ++time) {
            const std::chrono::duration<double> at(moment(random_) * settings_.seconds);
            events_.push_back({std::chrono::duration_cast<Clock::duration>(at), trouble});
        }
    }

    void startService()
    {
        service_ = std::make_unique<Processes>(1, [&](int) { serve(settings_, listener_.socket()); });
    }
    void startWorker(int place)
    {
        auto& at = workers_.at(static_cast<std::size_t>(place));
        at.name = fmt::format("worker {}.{}", place + 1, ++at.generation);
        at.process = std::make_unique<Processes>(1, [&](int) { Worker(settings_, place, at.name).run(); });
    }

    /// @return whether all processes succeeded
    static bool haveEnded(Processes& processes, std::chrono::milliseconds wait = {})
    {
        const auto event = processes.wait(wait);
        if (event == Processes::Event::interrupted) {
            throw Interrupted();
        }
        if (processes.anyFailed()) {
            throw std::runtime_error("a process failed");
        }
        return event == Processes::Event::allEnded;
    }

    /// The service and the workers never end by themselves.
    void watch()
    {
        bool ended = haveEnded(*service_, pace / 4);
        for (auto& worker : workers_) {
            ended = haveEnded(*worker.process) || ended;
        }
        if (ended) {
            throw std::runtime_error("a worker or the service ended before it was killed");
        }
        if (const auto now = Clock::now(); now >= nextLine_) {
            fmt::print("  {} of {} left, {} orders not created yet\n", sale_.stock(), settings_.stock,
                       sale_.unfinished());
            std::fflush(stdout);
            nextLine_ = now + std::chrono::seconds(2);
        }
    }
    /// Returns when the page has asked for its first figures.
    void startLooker()
    {
        if (settings_.lookWith.empty()) {
            return;
        }
        const auto command = fmt::format("{} {}", settings_.lookWith, page());
        looker_ = std::make_unique<Processes>(1, [&](int) {
            ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
            throw std::system_error(errno, std::generic_category(), "cannot start a shell");
        });
        while (sale_.counted("looks") == 0 && !haveEnded(*looker_, pace)) {
        }
    }

    /// Causes the next failure when its time has come.
    void cause(Clock::time_point start)
    {
        const auto now = Clock::now() - start;
        if (events_.empty() || events_.front().at > now) {
            return;
        }
        const auto trouble = events_.front().trouble;
        events_.erase(events_.begin());
        switch (trouble) {
        case Trouble::killWorker:
            return killWorker(now);
        case Trouble::stopWorker:
            return stopWorker(now);
        case Trouble::resumeWorker:
            return resumeWorker();
        case Trouble::killService:
            return killService();
        }
    }
    void again(Clock::duration at, Trouble trouble)
    {
        events_.push_back({at, trouble});
        std::ranges::sort(events_, {}, &Event::at);
    }

    /// Stops a worker that has at least @p orders under way: it is stopped before its orders are counted.
    /// @return the worker's place; -1 if there is no such worker now
    int catchWorker(std::size_t orders)
    {
        const int first = std::uniform_int_distribution(0, settings_.workers - 1)(random_);
        for (int step = 0; step < settings_.workers; ++step) {
            const int place = (first + step) % settings_.workers;
            auto& worker = workers_.at(static_cast<std::size_t>(place));
            if (place == stopped_) {
                continue;
            }
            worker.process->stop(0);
            if (sale_.underWay(worker.name) >= orders) {
                return place;
            }
            worker.process->resume(0);
        }
        return -1;
    }
    void killWorker(Clock::duration now)
    {
        const int place = catchWorker(1);
        if (place < 0) {
            return again(now + pace, Trouble::killWorker);
        }
        auto& worker = workers_.at(static_cast<std::size_t>(place));
        worker.process->kill(0);
        orders_.begins("worker killed", worker.name);
        ++done_.workersKilled;
        startWorker(place);
    }
    void stopWorker(Clock::duration now)
    {
        const int place = stopped_ >= 0 ? -1 : catchWorker(2); // one at a time; with two orders it probably has a lock
        if (place < 0) {
            return again(now + pace, Trouble::stopWorker);
        }
        stopped_ = place;
        orders_.begins("worker stopped", workers_.at(static_cast<std::size_t>(place)).name);
        ++done_.workersStopped;
        again(now + 2 * Worker::lease, Trouble::resumeWorker);
    }
    void resumeWorker()
    {
        workers_.at(static_cast<std::size_t>(stopped_)).process->resume(0);
        orders_.ends("worker stopped");
        stopped_ = -1;
    }
    void killService()
    {
        service_->kill(0);
        orders_.begins("service killed", "service");
        ++done_.servicesKilled;
        std::this_thread::sleep_for(10 * pace); // a buyer that comes now waits at the port
        startService();
        orders_.ends("service killed");
    }

    Settings settings_;
    Sale& sale_;
    Orders& orders_;
    Listener listener_;
    std::mt19937 random_;
    std::vector<Event> events_; ///< in order of time
    std::unique_ptr<Processes> service_;
    std::vector<Place> workers_;
    std::unique_ptr<Processes> looker_; ///< of Settings::lookWith
    int stopped_ = -1;                  ///< the place of the stopped worker; -1: none is
    Clock::time_point nextLine_ = Clock::now();
    Done done_;
};

} // namespace flash
