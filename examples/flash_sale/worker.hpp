/// @file
/// A worker: takes admitted orders and creates them, each under its user's lock.
#pragma once

#include "flash_sale/orders.hpp"
#include "flash_sale/sale.hpp"
#include "flash_sale/settings.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <utility>

namespace flash {

/// The work of one process, which runs until it is killed.
class Worker {
public:
    /// @param place among the workers. @param name a new name for each process that has this place
    Worker(const Settings& settings, int place, std::string name)
        : settings_(settings), place_(place), name_(std::move(name)), client_(configured(settings.url))
    {
    }

    [[noreturn]] void run()
    {
        for (int thread = 0; thread < settings_.threads; ++thread) {
            std::thread([this] { work(); }).detach(); // this object lives as long as the process
        }
        for (Sale sale(settings_);; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
            sale.report(place_, {holds_, waiters_});
        }
    }

    /// The lease of the worker's locks: the locks of a dead worker are free after this time.
    static constexpr std::chrono::milliseconds lease{1500};

private:
    /// Adds one to the number for as long as this object lives.
    class Counted {
    public:
        explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
        Counted(const Counted&) = delete;
        Counted& operator=(const Counted&) = delete;
        ~Counted() { --count_; }

    private:
        std::atomic<int>& count_;
    };

    static redislock::Config configured(const std::string& url)
    {
        auto config = redislock::Config::fromUrl(url);
        config.watchdogTimeout = lease;
        return config;
    }

    void work()
    try {
        Sale sale(settings_);
        Orders orders(settings_.database);
        for (;;) {
            for (const auto& order : sale.claim(name_)) {
                create(order, sale, orders);
            }
            for (const auto& order : sale.take(name_)) {
                create(order, sale, orders);
            }
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", name_, error.what());
        std::_Exit(2);
    }

    void create(const Order& order, Sale& sale, Orders& orders)
    {
        const auto held = lock(sale.lockName(order.user));
        const Counted hold(holds_);
        std::this_thread::sleep_for(
            std::chrono::milliseconds(10 + 2 * (order.id.back() % 16))); // stands for the time of a payment
        if (orders.create(order, *held.token(), name_) == Orders::Created::refused) {
            sale.count("refused"); // this worker stood still: another worker has the order, and finishes it
        } else {
            sale.finish(order);
        }
    }
    redislock::LockGuard lock(const std::string& name)
    {
        const Counted waiter(waiters_);
        return redislock::LockGuard(client_.getFencedLock(name));
    }

    Settings settings_;
    int place_;
    std::string name_;
    redislock::Client client_;
    std::atomic<int> holds_ = 0;
    std::atomic<int> waiters_ = 0;
};

} // namespace flash
