// The checker itself: a rule that never refuses anything proves nothing.
#include "structure/layers.hpp"

#include <gtest/gtest.h>

namespace redislock::test {
namespace {

struct Case {
    const char* name;
    const char* file;
    const char* target;
};

TEST(Layers, ArrowsThatGoDownAreAllowed)
{
    const Case cases[] = {
        {"base on base", "include/redislock/config.hpp", "redislock/endpoint.hpp"},
        {"logic on base", "src/core/machine/lease.hpp", "redislock/clock.hpp"},
        {"logic on logic", "src/core/machine/acquire_machine.hpp", "link/event.hpp"},
        {"logic on values", "src/link/event.hpp", "wire/reply.hpp"},
        {"logic on std", "src/core/machine/lease.hpp", "chrono"},
        {"protocol on base", "src/wire/codec.hpp", "redislock/error.hpp"},
        {"hiredis in the codec", "src/wire/codec.cpp", "hiredis/hiredis.h"},
        {"fmt in a compiled source", "src/protocol/printable.cpp", "fmt/format.h"},
        {"core on logic", "src/core/core.cpp", "core/machine/acquire_machine.hpp"},
        {"core on core", "src/core/core.hpp", "core/port.hpp"},
        {"core on scripts", "src/core/lock_kind.hpp", "wire/script.hpp"},
        {"core on a container", "src/core/core.hpp", "boost/unordered/unordered_flat_set.hpp"},
        {"core on what its holds tell", "src/core/core.hpp", "redislock/stop_at.hpp"},
        {"a deadline that is read without the mutex", "src/core/hold.hpp", "atomic"},
        {"transport on calls", "src/link/call_connection.hpp", "link/request/call.hpp"},
        {"runtime on core", "src/client/engine.hpp", "core/core.hpp"},
        {"transport on protocol", "src/transport/connection.cpp", "wire/codec.hpp"},
        {"transport on a listed structure", "src/transport/connection.hpp", "link/reply_queue.hpp"},
        {"transport on Asio", "src/transport/subscriber.cpp", "boost/asio/ip/tcp.hpp"},
        {"transport on POSIX", "src/link/connect/stream.cpp", "sys/socket.h"},
        {"a neighbour", "src/link/connect/stream.cpp", "stream.hpp"},
        {"runtime on logic", "src/client/engine.hpp", "core/machine/renew_machine.hpp"},
        {"runtime on transport", "src/client/engine.hpp", "transport/router.hpp"},
        {"runtime on api", "src/client/lock/client.cpp", "redislock/client.hpp"},
        {"api on base", "include/redislock/client.hpp", "redislock/config.hpp"},
        {"api on api", "include/redislock/client.hpp", "redislock/redis_lock.hpp"},
        {"api on a forward declaration", "include/redislock/client.hpp", "redislock/detail/fwd.hpp"},
        {"api on an erased handler", "include/redislock/redis_lock.hpp", "boost/asio/any_completion_handler.hpp"},
        {"the Boost check", "include/redislock/version.hpp.in", "boost/version.hpp"},
        {"prometheus on prometheus-cpp", "src/prometheus/series.hpp", "prometheus/counter.h"},
        {"prometheus on its observer", "src/prometheus/options.hpp", "redislock/prometheus_observer.hpp"},
        {"prometheus on how bytes are printed", "src/prometheus/a.cpp", "wire/printable.hpp"},
        {"testing on POSIX", "include/redislock/testing/redis_server.hpp", "sys/wait.h"},
    };
    for (const Case& each : cases) {
        EXPECT_EQ(violation(each.file, each.target), "") << each.name;
    }
}

TEST(Layers, ArrowsThatGoUpOrSidewaysAreRefused)
{
    const Case cases[] = {
        {"base on api", "include/redislock/config.hpp", "redislock/client.hpp"},
        {"base on logic", "include/redislock/error.hpp", "link/event.hpp"},
        {"base on Boost", "include/redislock/error.hpp", "boost/asio/error.hpp"},
        {"base on POSIX", "include/redislock/clock.hpp", "time.h"},
        {"logic on api", "src/core/machine/lease.hpp", "redislock/redis_lock.hpp"},
        {"logic on transport", "src/link/reply_queue.hpp", "link/connect/stream.hpp"},
        {"logic on the codec", "src/link/reply_queue.hpp", "wire/codec.hpp"},
        {"logic on runtime", "src/core/machine/lease.hpp", "client/engine.hpp"},
        {"logic on Boost", "src/core/machine/lease.hpp", "boost/asio/steady_timer.hpp"},
        {"logic on hiredis", "src/core/machine/lease.hpp", "hiredis/hiredis.h"},
        {"logic on mutex", "src/core/share/waiter_queue.hpp", "mutex"},
        {"logic on thread", "src/core/share/waiter_queue.hpp", "thread"},
        {"logic on atomic", "src/core/machine/lease.hpp", "atomic"},
        {"logic on condition_variable", "src/core/machine/lease.hpp", "condition_variable"},
        {"logic on the random device", "src/link/backoff.hpp", "random"},
        {"logic on POSIX", "src/core/machine/lease.hpp", "sys/timerfd.h"},
        {"logic on fmt", "src/core/machine/lease.hpp", "fmt/format.h"},
        {"core on transport", "src/core/core.cpp", "link/connect/stream.hpp"},
        {"core on runtime", "src/core/core.cpp", "client/engine.hpp"},
        {"core on the codec", "src/core/hold.cpp", "wire/codec.hpp"},
        {"core on api", "src/core/core.hpp", "redislock/client.hpp"},
        {"core on mutex", "src/core/core.hpp", "mutex"},
        {"core on atomic", "src/core/core.hpp", "atomic"},
        {"core on Asio", "src/core/core.cpp", "boost/asio/post.hpp"},
        {"core on POSIX", "src/link/request/signal.hpp", "unistd.h"},
        {"core on fmt", "src/core/core.cpp", "fmt/format.h"},
        {"transport on the core's locks", "src/link/call_connection.hpp", "core/core.hpp"},
        {"api on core", "include/redislock/client.hpp", "core/core.hpp"},
        {"protocol on logic", "src/wire/codec.cpp", "link/reply_queue.hpp"},
        {"protocol on transport", "src/wire/codec.cpp", "link/connect/stream.hpp"},
        {"protocol on Boost", "src/wire/codec.cpp", "boost/asio/buffer.hpp"},
        {"hiredis in a header", "src/wire/codec.hpp", "hiredis/hiredis.h"},
        {"hiredis elsewhere", "src/link/connect/stream.cpp", "hiredis/hiredis.h"},
        {"fmt in a header", "src/wire/printable.hpp", "fmt/format.h"},
        {"transport on a machine", "src/transport/call.hpp", "core/machine/acquire_machine.hpp"},
        {"transport on runtime", "src/transport/call.hpp", "client/engine.hpp"},
        {"transport on api", "src/transport/call.hpp", "redislock/client.hpp"},
        {"runtime on hiredis", "src/client/engine.cpp", "hiredis/hiredis.h"},
        {"runtime on prometheus-cpp", "src/client/engine.cpp", "prometheus/counter.h"},
        {"prometheus on runtime", "src/prometheus/series.cpp", "client/engine.hpp"},
        {"prometheus on the protocol", "src/prometheus/series.cpp", "wire/reply.hpp"},
        {"prometheus on fmt", "src/prometheus/series.cpp", "fmt/format.h"},
        {"api on what is not always there", "include/redislock/client.hpp", "redislock/prometheus_observer.hpp"},
        {"runtime on testing", "src/client/engine.cpp", "redislock/testing/redis_server.hpp"},
        {"api on logic", "include/redislock/redis_lock.hpp", "core/machine/lease.hpp"},
        {"api on the inside", "include/redislock/client.hpp", "client/engine.hpp"},
        {"api on sockets", "include/redislock/client.hpp", "boost/asio/ip/tcp.hpp"},
        {"api on the whole of Asio", "include/redislock/client.hpp", "boost/asio.hpp"},
        {"api on fmt", "include/redislock/client.hpp", "fmt/format.h"},
        {"api on POSIX", "include/redislock/client.hpp", "unistd.h"},
        {"api on testing", "include/redislock/redislock.hpp", "redislock/testing/redis_server.hpp"},
        {"testing on the library", "include/redislock/testing/redis_server.hpp", "redislock/client.hpp"},
        {"a folder without a layer", "src/misc/helper.cpp", "vector"},
        {"a detail header without a layer", "include/redislock/detail/helper.hpp", "vector"},
        {"an unknown library", "src/client/engine.cpp", "openssl/ssl.hpp"},
    };
    for (const Case& each : cases) {
        EXPECT_NE(violation(each.file, each.target), "") << each.name;
    }
}

TEST(Layers, IncludesAreFoundHoweverTheyAreWritten)
{
    const auto includes = includesOf("// #include <no>\n"
                                     "#include <vector>\n"
                                     "  #  include \"redislock/error.hpp\" // why\n"
                                     "#include<mutex>\n"
                                     "/// #include <no/either.hpp>\n"
                                     "#define include\n");
    ASSERT_EQ(includes.size(), 3U);
    EXPECT_EQ(includes[0].target, "vector");
    EXPECT_EQ(includes[0].line, 2);
    EXPECT_EQ(includes[1].target, "redislock/error.hpp");
    EXPECT_EQ(includes[2].target, "mutex");
    EXPECT_EQ(includes[2].line, 4);
}

TEST(Layers, ScriptsAreNamedAfterTheirFiles)
{
    EXPECT_EQ(scriptIdentifier("redis_lock/lock"), "redisLockLock");
    EXPECT_EQ(scriptIdentifier("redis_lock/force_unlock"), "redisLockForceUnlock");
}

TEST(Layers, TheProgramInAReadmeIsTheFirstBlockWithAMain)
{
    EXPECT_EQ(firstProgram("# x\n```cpp\nf();\n```\n```cpp\nint main() {}\n```\n"), "int main() {}\n");
    EXPECT_EQ(firstProgram("```sh\nint main(\n```\n"), "");
}

} // namespace
} // namespace redislock::test
