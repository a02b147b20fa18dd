#include "values/system/process.hpp"

#include "values/connection_name.hpp"

#include <climits>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace redislock::detail {

namespace {

std::atomic<std::uint64_t> lastThread{0};
std::atomic<std::uint32_t> forks{0};

extern "C" void redislockChildAfterFork()
{
    forks.fetch_add(1, std::memory_order_relaxed);
}

} // namespace

std::uint64_t currentThread() noexcept
{
    thread_local const std::uint64_t id = lastThread.fetch_add(1, std::memory_order_relaxed) + 1;
    return id;
}

std::uint32_t forkGeneration() noexcept
{
    static const int registered = ::pthread_atfork(nullptr, nullptr, &redislockChildAfterFork);
    (void)registered;
    return forks.load(std::memory_order_relaxed);
}

void keepLoaded() noexcept
{
    Dl_info self{};
    if (::dladdr(reinterpret_cast<const void*>(&keepLoaded), &self) != 0) {
        (void)::dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

std::string hostName()
{
    char name[HOST_NAME_MAX + 1] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? std::string(name) : std::string();
}

std::string connectionNameOf(const Config& config, std::string_view clientId)
{
    return config.naming == Naming::asGiven
               ? config.clientName
               : connectionName(config.clientName, clientId, hostName(), static_cast<std::uint64_t>(::getpid()));
}

} // namespace redislock::detail
