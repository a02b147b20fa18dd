// two_versions local|global: a program with an Asio of its own loads two plugins with two versions of the library.
#include <redislock/testing/redis_server.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <dlfcn.h>

#include <iostream>
#include <string_view>

namespace {

const void* useLibraryOf(const char* plugin, int scope, const std::string& url)
{
    void* const loaded = ::dlopen(plugin, RTLD_NOW | scope);
    void* const function = loaded != nullptr ? ::dlsym(loaded, "useLibrary") : nullptr;
    if (function == nullptr) {
        std::cerr << ::dlerror() << '\n';
        return nullptr;
    }
    return reinterpret_cast<const void* (*)(const char*)>(function)(url.c_str());
}

} // namespace

int main(int argc, char** argv)
{
    const int scope = argc > 1 && argv[1] == std::string_view("global") ? RTLD_GLOBAL : RTLD_LOCAL;
    const redislock::testing::RedisServer server;
    const void* one = nullptr;
    const void* other = nullptr;
    boost::asio::io_context io;
    boost::asio::post(io, [&] {
        one = useLibraryOf(plugin_of_redislock, scope, server.url());
        other = useLibraryOf(plugin_of_other_version, scope, server.url());
    });
    io.run();
    if (one == nullptr || other == nullptr) {
        std::cerr << "a plugin got no lock\n";
        return 1;
    }
    if (one == other) {
        std::cerr << "both plugins use the same version\n";
        return 1;
    }
    std::cout << "each plugin took a lock with its own version\n";
    return 0;
}
