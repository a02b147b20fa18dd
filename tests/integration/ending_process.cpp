#include "integration/ending_process.hpp"

#include "redislock/redislock.hpp"
#include "support/yields.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace redislock::test {

namespace asio = boost::asio;

bool EndingProcess::hasContext(Form form)
{
    return form == Form::asynchronous || form == Form::asynchronousGroup || form == Form::asynchronousSemaphore ||
           form == Form::asynchronousPermits || form == Form::asynchronousLatch;
}

namespace {

using Form = EndingProcess::Form;
using Way = EndingProcess::Way;

constexpr int waiterCount = 50;

/// The functions of a form. They own what they use, except the client and the context.
struct Deeds {
    std::function<void()> take;
    std::function<void()> wait; ///< by a thread of its own; with a context: begun by the only one
    std::function<void()> letGo;
};

std::atomic<int> kept{0}; ///< how many things were got and could not be given back

/// @param acquired the error of the call; none if there is a permit.
void giveBack(const Semaphore& semaphore, std::error_code acquired)
{
    if (!acquired) {
        std::error_code ec;
        semaphore.release(1, ec);
        kept += ec ? 1 : 0;
    }
}

bool isEnded(Unlocked how)
{
    return how == Unlocked::released || how == Unlocked::passedOn;
}

/// Gives back a guard, or a permit. @param acquired the error of the call; none if there is one.
template <class Guard>
void giveBack(Guard guard, std::error_code acquired)
{
    if (!acquired) {
        kept += isEnded(guard.release(acquired)) ? 0 : 1;
    }
}

/// A form that takes a lock with a guard and frees it at the guard's end.
template <class Guard, class Lock>
Deeds guarded(Lock lock)
{
    const auto held = std::make_shared<Guard>();
    return {.take = [=] { *held = Guard(lock); },
            .wait =
                [=] {
                    std::error_code ec;
                    Guard own(lock, ec);
                    giveBack(std::move(own), ec);
                },
            .letGo = [=] { *held = Guard(); }};
}

template <class Guard, class Lock>
Deeds awaited(Lock lock, asio::thread_pool& context)
{
    const auto held = std::make_shared<Guard>();
    return {.take = [=] { *held = lock.asyncLock(asio::use_future).get(); },
            .wait =
                [=, &context] {
                    lock.asyncLock(asio::bind_executor(
                        context, [](std::error_code ec, Guard own) { giveBack(std::move(own), ec); }));
                },
            .letGo = [=] { held->asyncRelease(asio::detached); }};
}

Deeds threaded(const RedisLock& lock)
{
    return {.take = [=] { lock.lock(); },
            .wait =
                [=] {
                    std::error_code ec;
                    lock.lock(ec);
                    if (!ec) {
                        kept += isEnded(lock.unlock(ec)) ? 0 : 1;
                    }
                },
            .letGo = [=] { lock.unlock(); }};
}

Deeds counted(const Semaphore& semaphore)
{
    return {.take =
                [=] {
                    (void)semaphore.trySetPermits(1);
                    semaphore.acquire();
                },
            .wait =
                [=] {
                    std::error_code ec;
                    semaphore.acquire(1, ec);
                    giveBack(semaphore, ec);
                },
            .letGo = [=] { semaphore.release(); }};
}

Deeds awaited(const Semaphore& semaphore, asio::thread_pool& context)
{
    auto deeds = counted(semaphore);
    deeds.wait = [=, &context] {
        semaphore.asyncAcquire(
            1, asio::bind_executor(context, [semaphore](boost::system::error_code ec) { giveBack(semaphore, ec); }));
    };
    return deeds;
}

Deeds leased(const PermitExpirableSemaphore& semaphore, Lease lease)
{
    const auto held = std::make_shared<Permit>();
    return {.take =
                [=] {
                    (void)semaphore.trySetPermits(1);
                    *held = semaphore.acquire(lease);
                },
            .wait =
                [=] {
                    std::error_code ec;
                    Permit own = semaphore.acquire(lease, ec);
                    giveBack(std::move(own), ec);
                },
            .letGo = [=] { *held = Permit(); }};
}

Deeds awaited(const PermitExpirableSemaphore& semaphore, Lease lease, asio::thread_pool& context)
{
    auto deeds = leased(semaphore, lease);
    deeds.wait = [=, &context] {
        semaphore.asyncAcquire(
            lease, asio::bind_executor(context, [](std::error_code ec, Permit own) { giveBack(std::move(own), ec); }));
    };
    return deeds;
}

Deeds counted(const CountDownLatch& latch)
{
    return {.take = [=] { (void)latch.trySetCount(1); },
            .wait =
                [=] {
                    std::error_code ec;
                    latch.wait(ec);
                },
            .letGo = [=] { latch.countDown(); }};
}

Deeds awaited(const CountDownLatch& latch, asio::thread_pool& context)
{
    auto deeds = counted(latch);
    deeds.wait = [=, &context] { latch.asyncWait(asio::bind_executor(context, [](auto) {})); };
    return deeds;
}

Deeds deedsOf(Form form, const Client& client, const std::string& name, asio::thread_pool& context)
{
    const auto group = [&] {
        return MultiLock(
            {client.getLock(EndingProcess::member(name, 1)), client.getLock(EndingProcess::member(name, 2))});
    };
    switch (form) {
    case Form::thread:
        return threaded(client.getLock(name));
    case Form::guard:
        return guarded<LockGuard>(client.getLock(name));
    case Form::asynchronous:
        return awaited<LockGuard>(client.getLock(name), context);
    case Form::group:
        return guarded<GroupGuard>(group());
    case Form::asynchronousGroup:
        return awaited<GroupGuard>(group(), context);
    case Form::semaphore:
        return counted(client.getSemaphore(name));
    case Form::asynchronousSemaphore:
        return awaited(client.getSemaphore(name), context);
    case Form::permits:
        return leased(client.getPermitExpirableSemaphore(name), client.config().watchdogTimeout);
    case Form::asynchronousPermits:
        return awaited(client.getPermitExpirableSemaphore(name), client.config().watchdogTimeout, context);
    case Form::latch:
        return counted(client.getCountDownLatch(name));
    case Form::asynchronousLatch:
        return awaited(client.getCountDownLatch(name), context);
    }
    return {};
}

void await(const std::string& wanted)
{
    for (std::string word; std::getline(std::cin, word) && word != wanted;) {
    }
}

/// Does not return for the ways that end the process.
void end(Way way, std::optional<Client>& client, std::optional<asio::thread_pool>& context)
{
    switch (way) {
    case Way::shutdown:
        client->shutdown(std::chrono::seconds(5));
        break;
    case Way::destructor:
        client.reset();
        break;
    case Way::context:
        context->stop();
        context->join();
        context.reset();
        break;
    case Way::exit:
        ::_exit(0);
    case Way::kill:
        ::kill(::getpid(), SIGKILL);
    }
}

} // namespace

int runEnding(const std::vector<std::string>& arguments)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto form = static_cast<Form>(std::stoi(arguments.at(2)));
    const auto way = static_cast<Way>(std::stoi(arguments.at(3)));
    std::optional<asio::thread_pool> context(1);
    std::optional<Client> client(Config::fromUrl(arguments.at(0)));
    auto deeds = deedsOf(form, *client, arguments.at(1), *context);
    deeds.take();
    say("taken");
    std::vector<std::thread> threads;
    for (int i = 0; i < waiterCount; ++i) {
        EndingProcess::hasContext(form) ? deeds.wait() : void(threads.emplace_back(deeds.wait));
    }
    if (way == Way::exit || way == Way::kill) {
        std::ranges::for_each(threads, &std::thread::detach); // no thread joins them
        threads.clear();
    }
    say("waiting");
    await("end");
    // Yields between the last steps of a thread and the end that waits for them; this takes time, which the destructor
    // does not give. With many waiters for locks it would take too much time.
    std::optional<Yields> yields;
    if (form >= Form::semaphore && way == Way::shutdown) {
        yields.emplace(4U);
    }
    deeds.letGo();
    end(way, client, context);
    for (auto& thread : threads) {
        thread.join();
    }
    if (context) {
        context->join();
    }
    say(std::to_string(kept));
    await("leave");
    ::_exit(0); // _exit: the test is not about the rest of the end of a process
}

} // namespace redislock::test
