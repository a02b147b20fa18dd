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
        {"logic on base", "include/redislock/detail/logic/lease.hpp", "redislock/clock.hpp"},
        {"logic on logic", "include/redislock/detail/logic/acquire_machine.hpp", "redislock/detail/logic/event.hpp"},
        {"logic on values", "include/redislock/detail/logic/event.hpp", "redislock/detail/protocol/reply.hpp"},
        {"logic on std", "include/redislock/detail/logic/lease.hpp", "chrono"},
        {"protocol on base", "src/protocol/codec.hpp", "redislock/error.hpp"},
        {"hiredis in the codec", "src/protocol/codec.cpp", "hiredis/hiredis.h"},
        {"fmt in a compiled source", "src/protocol/printable.cpp", "fmt/format.h"},
        {"core on logic", "src/logic/lock/core.cpp", "redislock/detail/logic/acquire_machine.hpp"},
        {"core on core", "src/logic/lock/core.hpp", "logic/call/port.hpp"},
        {"core on scripts", "src/logic/lock/lock_kind.hpp", "redislock/detail/protocol/script.hpp"},
        {"core on a container", "src/logic/lock/core.hpp", "boost/unordered/unordered_flat_set.hpp"},
        {"core on what its holds tell", "src/logic/lock/core.hpp", "redislock/stop_at.hpp"},
        {"a deadline that is read without the mutex", "src/logic/lock/hold.hpp", "atomic"},
        {"transport on calls", "src/transport/call_connection.hpp", "logic/call/call.hpp"},
        {"runtime on core", "src/runtime/engine/engine.hpp", "logic/lock/core.hpp"},
        {"transport on protocol", "src/transport/connection.cpp", "protocol/codec.hpp"},
        {"transport on a listed structure", "src/transport/connection.hpp", "redislock/detail/logic/reply_queue.hpp"},
        {"transport on Asio", "src/transport/subscriber.cpp", "boost/asio/ip/tcp.hpp"},
        {"transport on POSIX", "src/transport/connect/stream.cpp", "sys/socket.h"},
        {"a neighbour", "src/transport/connect/stream.cpp", "stream.hpp"},
        {"runtime on logic", "src/runtime/engine/engine.hpp", "redislock/detail/logic/renew_machine.hpp"},
        {"runtime on transport", "src/runtime/engine/engine.hpp", "transport/router.hpp"},
        {"runtime on api", "src/runtime/lock/client.cpp", "redislock/client.hpp"},
        {"api on base", "include/redislock/client.hpp", "redislock/config.hpp"},
        {"api on api", "include/redislock/client.hpp", "redislock/redis_lock.hpp"},
        {"api on a forward declaration", "include/redislock/client.hpp", "redislock/detail/fwd.hpp"},
        {"api on an erased handler", "include/redislock/redis_lock.hpp", "boost/asio/any_completion_handler.hpp"},
        {"the Boost check", "include/redislock/version.hpp.in", "boost/version.hpp"},
        {"prometheus on prometheus-cpp", "src/prometheus/series.hpp", "prometheus/counter.h"},
        {"prometheus on its observer", "src/prometheus/options.hpp", "redislock/prometheus_observer.hpp"},
        {"prometheus on how bytes are printed", "src/prometheus/a.cpp", "redislock/detail/protocol/printable.hpp"},
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
        {"base on logic", "include/redislock/error.hpp", "redislock/detail/logic/event.hpp"},
        {"base on Boost", "include/redislock/error.hpp", "boost/asio/error.hpp"},
        {"base on POSIX", "include/redislock/clock.hpp", "time.h"},
        {"logic on api", "include/redislock/detail/logic/lease.hpp", "redislock/redis_lock.hpp"},
        {"logic on transport", "include/redislock/detail/logic/reply_queue.hpp", "transport/connect/stream.hpp"},
        {"logic on the codec", "include/redislock/detail/logic/reply_queue.hpp", "protocol/codec.hpp"},
        {"logic on runtime", "include/redislock/detail/logic/lease.hpp", "runtime/engine/engine.hpp"},
        {"logic on Boost", "include/redislock/detail/logic/lease.hpp", "boost/asio/steady_timer.hpp"},
        {"logic on hiredis", "include/redislock/detail/logic/lease.hpp", "hiredis/hiredis.h"},
        {"logic on mutex", "include/redislock/detail/logic/waiter_queue.hpp", "mutex"},
        {"logic on thread", "include/redislock/detail/logic/waiter_queue.hpp", "thread"},
        {"logic on atomic", "include/redislock/detail/logic/lease.hpp", "atomic"},
        {"logic on condition_variable", "include/redislock/detail/logic/lease.hpp", "condition_variable"},
        {"logic on the random device", "include/redislock/detail/logic/backoff.hpp", "random"},
        {"logic on POSIX", "include/redislock/detail/logic/lease.hpp", "sys/timerfd.h"},
        {"logic on fmt", "include/redislock/detail/logic/lease.hpp", "fmt/format.h"},
        {"core on transport", "src/logic/lock/core.cpp", "transport/connect/stream.hpp"},
        {"core on runtime", "src/logic/lock/core.cpp", "runtime/engine/engine.hpp"},
        {"core on the codec", "src/logic/lock/hold.cpp", "protocol/codec.hpp"},
        {"core on api", "src/logic/lock/core.hpp", "redislock/client.hpp"},
        {"core on mutex", "src/logic/lock/core.hpp", "mutex"},
        {"core on atomic", "src/logic/lock/core.hpp", "atomic"},
        {"core on Asio", "src/logic/lock/core.cpp", "boost/asio/post.hpp"},
        {"core on POSIX", "src/logic/call/signal.hpp", "unistd.h"},
        {"core on fmt", "src/logic/lock/core.cpp", "fmt/format.h"},
        {"transport on the core's locks", "src/transport/call_connection.hpp", "logic/lock/core.hpp"},
        {"api on core", "include/redislock/client.hpp", "logic/lock/core.hpp"},
        {"protocol on logic", "src/protocol/codec.cpp", "redislock/detail/logic/reply_queue.hpp"},
        {"protocol on transport", "src/protocol/codec.cpp", "transport/connect/stream.hpp"},
        {"protocol on Boost", "src/protocol/codec.cpp", "boost/asio/buffer.hpp"},
        {"hiredis in a header", "src/protocol/codec.hpp", "hiredis/hiredis.h"},
        {"hiredis elsewhere", "src/transport/connect/stream.cpp", "hiredis/hiredis.h"},
        {"fmt in a header", "include/redislock/detail/protocol/printable.hpp", "fmt/format.h"},
        {"transport on a machine", "src/transport/call.hpp", "redislock/detail/logic/acquire_machine.hpp"},
        {"transport on runtime", "src/transport/call.hpp", "runtime/engine/engine.hpp"},
        {"transport on api", "src/transport/call.hpp", "redislock/client.hpp"},
        {"runtime on hiredis", "src/runtime/engine/engine.cpp", "hiredis/hiredis.h"},
        {"runtime on prometheus-cpp", "src/runtime/engine/engine.cpp", "prometheus/counter.h"},
        {"prometheus on runtime", "src/prometheus/series.cpp", "runtime/engine/engine.hpp"},
        {"prometheus on the protocol", "src/prometheus/series.cpp", "redislock/detail/protocol/reply.hpp"},
        {"prometheus on fmt", "src/prometheus/series.cpp", "fmt/format.h"},
        {"api on what is not always there", "include/redislock/client.hpp", "redislock/prometheus_observer.hpp"},
        {"runtime on testing", "src/runtime/engine/engine.cpp", "redislock/testing/redis_server.hpp"},
        {"api on logic", "include/redislock/redis_lock.hpp", "redislock/detail/logic/lease.hpp"},
        {"api on the inside", "include/redislock/client.hpp", "runtime/engine/engine.hpp"},
        {"api on sockets", "include/redislock/client.hpp", "boost/asio/ip/tcp.hpp"},
        {"api on the whole of Asio", "include/redislock/client.hpp", "boost/asio.hpp"},
        {"api on fmt", "include/redislock/client.hpp", "fmt/format.h"},
        {"api on POSIX", "include/redislock/client.hpp", "unistd.h"},
        {"api on testing", "include/redislock/redislock.hpp", "redislock/testing/redis_server.hpp"},
        {"testing on the library", "include/redislock/testing/redis_server.hpp", "redislock/client.hpp"},
        {"a folder without a layer", "src/misc/helper.cpp", "vector"},
        {"a detail header without a layer", "include/redislock/detail/helper.hpp", "vector"},
        {"an unknown library", "src/runtime/engine/engine.cpp", "openssl/ssl.hpp"},
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
