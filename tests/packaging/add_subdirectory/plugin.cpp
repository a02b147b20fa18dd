// A plugin that uses the library, while another plugin uses another version of it.
#include <redislock/redislock.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <mutex>
#include <string_view>

namespace {

bool lockBothWays(redislock::Client& client)
{
    auto lock = client.getLock("plugin");
    {
        std::scoped_lock held(lock);
        if (!lock.isHeldByCurrentThread()) {
            return false;
        }
    }
    bool held = false;
    boost::asio::io_context io;
    lock.asyncLock(boost::asio::bind_executor(
        io, [&held](boost::system::error_code ec, redislock::LockGuard guard) { held = !ec && guard; }));
    io.run();
    return held;
}

/// Whether the plugin can catch the library's error by its type.
bool catchesErrors()
{
    try {
        redislock::Client("nonsense://");
        return false;
    } catch (const redislock::LockError& error) {
        return error.code() == redislock::Errc::badConfig || error.code() == redislock::Errc::unsupported;
    }
}

} // namespace

/// Takes a lock on the server, and gives it back.
/// @return the address of an object that each version has once; null: something failed.
extern "C" [[gnu::visibility("default")]] const void* useLibrary(const char* url)
try {
    redislock::Client client{std::string_view(url)};
    return lockBothWays(client) && catchesErrors() ? &redislock::errorCategory() : nullptr;
} catch (const std::exception&) {
    return nullptr;
}
