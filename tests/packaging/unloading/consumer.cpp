// Loads and unloads a plugin that contains the library, and forks in between.
#include <redislock/testing/redis_server.hpp>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>

namespace {

class Plugin {
public:
    Plugin() : handle_(::dlopen(PLUGIN, RTLD_NOW))
    {
        if (handle_ == nullptr) {
            std::cerr << ::dlerror() << '\n';
            std::exit(1);
        }
    }
    Plugin(const Plugin&) = delete;
    Plugin& operator=(const Plugin&) = delete;
    ~Plugin() { ::dlclose(handle_); }

    template <class Function>
    Function* function(const char* name) const
    {
        return reinterpret_cast<Function*>(::dlsym(handle_, name));
    }

    static bool isLoaded()
    {
        void* const loaded = ::dlopen(PLUGIN, RTLD_NOW | RTLD_NOLOAD);
        return loaded != nullptr && ::dlclose(loaded) == 0;
    }

private:
    void* handle_;
};

using Use = bool(const char*);
using Leave = bool(const char*, int);

/// Whether a forked child does this.
template <class What>
bool inChild(What what)
{
    const auto child = ::fork();
    if (child == 0) {
        ::_exit(what() ? 0 : 1);
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool hasOneThread()
{
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::distance(begin(threads), end(threads)) == 1;
}

int fail(const char* why)
{
    std::cerr << why << '\n';
    return 1;
}

} // namespace

int main()
{
    const redislock::testing::RedisServer server;
    const std::string url = server.url();
    for (int round = 0; round < 3; ++round) {
        {
            const Plugin plugin;
            const auto use = plugin.function<Use>("useLibrary");
            if (!use(url.c_str()) || !inChild([&] { return use(url.c_str()); }) || !use(url.c_str())) {
                return fail("the plugin got no lock");
            }
        }
        if (Plugin::isLoaded() || !inChild([] { return true; })) {
            return fail("the plugin was not unloaded, or has left something for forks");
        }
        if (!inChild([&] { return Plugin().function<Use>("useLibrary")(url.c_str()); })) {
            return fail("a child that loaded the plugin itself got no lock");
        }
    }
    int ends[2] = {};
    if (::pipe(ends) != 0) {
        return fail("no pipe");
    }
    if (!Plugin().function<Leave>("leaveThread")(url.c_str(), ends[0])) {
        return fail("the plugin left no thread");
    }
    ::close(ends[1]); // the thread goes on
    for (int i = 0; i < 3000 && !hasOneThread(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (!hasOneThread()) {
        return fail("a client's thread did not end");
    }
    std::cout << "the plugin was loaded and unloaded\n";
    return 0;
}
