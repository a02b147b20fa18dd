#include "integration/asker_process.hpp"

#include "redislock/redislock.hpp"

#include <sys/prctl.h>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <iostream>
#include <latch>
#include <string>
#include <system_error>

namespace redislock::test {

namespace {

using namespace std::chrono_literals;

std::string text(bool value)
{
    return value ? "true" : "false";
}

std::string text(Unlocked how)
{
    return how == Unlocked::released ? "released" : "not released";
}

/// The preparation and the call of a thread. Both functions may be called twice, with different names.
struct Asker {
    std::string what;
    std::function<void(const std::string& name)> prepare;
    std::function<std::string(const std::string& name, std::error_code& ec)> ask;
    bool counts = false; ///< it shares the name
};

std::array<Asker, AskerProcess::askers> askersOf(const Client& client)
{
    const auto lockOf = [&client](const std::string& name) { return client.getLock(name); };
    const auto hold = [lockOf](const std::string& name) { lockOf(name).lock(1min); };
    const auto nothing = [](const std::string&) {};
    return {{
        {"tryLock", nothing,
         [=](const auto& name, auto& ec) { return text(lockOf(name).tryLock(oneAttempt, 1min, ec)); }},
        {"lock", nothing, [=](const auto& name, auto& ec) { return text(lockOf(name).tryLock(1min, 1min, ec)); }},
        {"nested", hold,
         [=](const auto& name, auto& ec) {
             lockOf(name).lock(1min, ec);
             return std::string("ok");
         }},
        {"unlock", hold, [=](const auto& name, auto& ec) { return text(lockOf(name).unlock(ec)); }},
        {"isLocked", nothing, [=](const auto& name, auto& ec) { return text(lockOf(name).isLocked(ec)); }},
        {"acquire",
         [&client](const auto& name) { client.getSemaphore(AskerProcess::semaphore(name)).trySetPermits(5); },
         [&client](const auto& name, auto& ec) {
             return text(client.getSemaphore(AskerProcess::semaphore(name)).tryAcquire(1, 1min, ec));
         },
         true},
        {"release", nothing,
         [&client](const auto& name, auto& ec) {
             client.getSemaphore(AskerProcess::semaphore(name)).release(2, ec);
             return std::string("ok");
         },
         true},
        {"countDown", nothing,
         [&client](const auto& name, auto& ec) {
             return std::to_string(client.getCountDownLatch(AskerProcess::latch(name)).countDown(ec));
         },
         true},
    }};
}

} // namespace

int runAsker(const std::vector<std::string>& arguments)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const Client client(Config::fromUrl(arguments.at(0)));
    const std::string name = arguments.at(1);
    const auto askers = askersOf(client);
    std::latch prepared(static_cast<std::ptrdiff_t>(askers.size()));
    std::promise<void> go;
    const auto told = go.get_future().share();
    std::vector<std::future<std::string>> answers;
    for (const Asker& asker : askers) {
        answers.push_back(std::async(std::launch::async, [&] {
            std::error_code ec;
            const std::string before = name + ":before:" + asker.what;
            asker.prepare(before);
            (void)asker.ask(before, ec); // from now on the server knows the script
            const std::string own = asker.counts ? name : name + ":" + asker.what;
            asker.prepare(own);
            prepared.count_down();
            told.wait();
            const auto answer = asker.ask(own, ec);
            return asker.what + "=" + (ec ? ec.message() : answer);
        }));
    }
    prepared.wait();
    say("ready");
    for (std::string word; std::getline(std::cin, word) && word != "ask";) {
    }
    go.set_value();
    std::string all;
    for (auto& answer : answers) {
        all += (all.empty() ? "" : " ") + answer.get();
    }
    say(all);
    return 0;
}

} // namespace redislock::test
