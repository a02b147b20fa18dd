// Locks before main() and in the destructors of static objects.
#include "integration/role_process.hpp"
#include "redislock/redislock.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/sanitizers.hpp"

#include <boost/asio/use_future.hpp>

#include <cxxabi.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// What the check of this program must find, though it belongs to no library.
namespace redislock::statics_sample {

extern const std::string madeBeforeMain;
const std::string madeBeforeMain(100, 'x');

const std::string& destroyedAtExit();
const std::string& destroyedAtExit()
{
    static const std::string text(100, 'x');
    return text;
}

} // namespace redislock::statics_sample

namespace redislock::test {
namespace {

constexpr auto earlyUrl = "REDISLOCK_TEST_EARLY";
constexpr auto lateUrl = "REDISLOCK_TEST_LATE";

/// Says a line to the test. Not by a stream, which may not be made yet.
void sayAtOnce(const std::string& line)
{
    (void)!::write(STDOUT_FILENO, (line + "\n").data(), line.size() + 1);
}

/// Locks while static objects are made.
struct Early {
    Early()
    {
        if (const char* url = std::getenv(earlyUrl)) {
            try {
                const Client client(url);
                const auto lock = client.getLock("early");
                lock.lock();
                const auto guard = client.getFencedLock("other").asyncLock(boost::asio::use_future).get();
                const bool isExcluded = !Client(url).getLock("early").tryLock();
                sayAtOnce(isExcluded && lock.unlock() == Unlocked::released ? "locked" : "not locked");
            } catch (const std::exception& error) {
                sayAtOnce(error.what());
            }
            ::_exit(0);
        }
    }
};
const Early early;

/// Made before the library is first used, and so destroyed after what the library would destroy.
struct Late {
    std::optional<Client> client;

    Late() = default;
    Late(const Late&) = delete;
    Late& operator=(const Late&) = delete;
    ~Late()
    {
        if (!client) {
            return;
        }
        std::vector<std::unique_ptr<std::array<char, 24>>> reused(100);
        for (auto& memory : reused) {
            memory = std::make_unique<std::array<char, 24>>(); // of stop states that are gone
        }
        const auto lock = client->getLock("late");
        sayAtOnce(lock.stopToken().stop_requested() ? "stopped" : "go on");
        sayAtOnce(std::error_code(Errc::lost).message());
        sayAtOnce(std::error_code(Cause::silent).message());
        sayAtOnce("permit \"" + Permit().id() + "\"");
        std::error_code ec;
        lock.lock(ec);
        sayAtOnce(ec ? ec.message() : std::string(toString(lock.unlock(ec))));
    }

    /// Uses all that the destructor will use.
    void use(const char* url)
    {
        client.emplace(url);
        (void)client->getLock("late").stopToken();
        (void)std::error_code(Errc::lost).message();
        (void)std::error_code(Cause::silent).message();
        (void)Permit().id();
    }
};
Late late; // NOLINT: its destructor is the test

/// This program in another role, which a variable of the environment tells.
class ProcessWith : public RoleProcess {
public:
    ProcessWith(const char* variable, const std::string& url)
        : RoleProcess((::setenv(variable, url.c_str(), 1), std::vector<std::string>()))
    {
        ::unsetenv(variable);
    }
};

TEST(StaticObjects, MayLockBeforeMain)
{
    const testing::RedisServer redis;
    ProcessWith process(earlyUrl, redis.url());
    EXPECT_EQ(process.line(), "locked");
    EXPECT_EQ(process.exitStatus(), 0);
}

TEST(StaticObjects, MayUseLocksInTheirDestructors)
{
    const testing::RedisServer redis;
    ProcessWith process(lateUrl, redis.url());
    EXPECT_EQ(process.line(), "stopped");
    EXPECT_EQ(process.line(), make_error_code(Errc::lost).message());
    EXPECT_EQ(process.line(), make_error_code(Cause::silent).message());
    EXPECT_EQ(process.line(), "permit \"\"");
    EXPECT_EQ(process.line(), "released");
    EXPECT_EQ(process.exitStatus(), 0);
}

#if !defined(REDISLOCK_ADDRESS_SANITIZER) && !defined(REDISLOCK_THREAD_SANITIZER) // these add code of their own

bool isOurs(std::string_view symbol)
{
    constexpr std::string_view tests = "N9redislock4test";
    for (const std::string_view prefix : {"_ZN", "_ZNK", "_ZZN", "_ZZNK", "_ZGVN", "_ZGVZN", "_ZGVZNK"}) {
        if (symbol.starts_with(prefix) && symbol.substr(prefix.size()).starts_with("9redislock")) {
            return symbol.find(tests) == std::string_view::npos;
        }
    }
    return false;
}

std::string demangled(const std::string& symbol)
{
    const std::unique_ptr<char, decltype(&std::free)> name(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr), &std::free);
    return name ? name.get() : symbol;
}

/// What code of the library does in this program, which contains the whole library, beside its functions' work: which
/// objects are made before main(), and in which functions are static objects that are destroyed at the end.
std::set<std::string> staticLives()
{
    std::set<std::string> found;
    const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
    const auto command = "objdump -d --no-show-raw-insn '" + program + "'";
    std::FILE* listing = ::popen(command.c_str(), "r");
    bool isMaking = false;
    std::string function;
    std::array<char, 4096> buffer{};
    while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), listing) != nullptr) {
        const std::string_view line(buffer.data());
        const auto open = line.rfind('<');
        const auto close = line.find_first_of(">+@", open == std::string_view::npos ? 0 : open);
        if (open == std::string_view::npos || close == std::string_view::npos || line[close] == '+') {
            continue; // with a distance it is only what lies before something without a name
        }
        const std::string symbol(line.substr(open + 1, close - open - 1));
        if (line.ends_with(">:\n")) {
            function = symbol;
            isMaking = symbol.starts_with("_GLOBAL__") || symbol.starts_with("__cxx_global_") ||
                       symbol.find("__static_initialization_and_destruction") != std::string::npos;
        } else if (isMaking && isOurs(symbol)) {
            found.insert("made before main: " + demangled(symbol));
        } else if (isOurs(function) && (symbol.starts_with("__cxa_atexit") ||
                                        symbol.starts_with("__cxa_thread_atexit") || symbol.starts_with("atexit"))) {
            found.insert("destroyed at the end: in " + demangled(function));
        }
    }
    EXPECT_EQ(::pclose(listing), 0) << command;
    return found;
}

TEST(StaticObjects, OfTheLibraryAreNeitherMadeBeforeMainNorDestroyed)
{
    EXPECT_THAT(staticLives(),
                ::testing::ElementsAre(
                    ::testing::StartsWith("destroyed at the end: in redislock::statics_sample::destroyedAtExit"),
                    ::testing::StartsWith("made before main: redislock::statics_sample::madeBeforeMain")));
}

#endif

} // namespace
} // namespace redislock::test

int main(int argc, char** argv)
{
    if (const char* url = std::getenv(redislock::test::lateUrl)) {
        redislock::test::late.use(url);
        return 0;
    }
    ::testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
}
