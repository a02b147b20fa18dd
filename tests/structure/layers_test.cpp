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
        {"values on values", "include/redislock/config.hpp", "redislock/endpoint.hpp"},
        {"a body of a value on how bytes are printed", "src/values/url.cpp", "values/printable.hpp"},
        {"a value on the count of its references", "include/redislock/hold_ref.hpp",
         "boost/smart_ptr/intrusive_ptr.hpp"},
        {"system on values", "src/values/system/process.hpp", "redislock/config.hpp"},
        {"system on POSIX", "src/values/system/process.hpp", "sys/random.h"},
        {"wire on values", "src/wire/codec.hpp", "redislock/error.hpp"},
        {"OpenSSL in its file", "src/link/tls/tls.cpp", "openssl/ssl.h"},
        {"hiredis in the codec", "src/wire/codec.cpp", "hiredis/hiredis.h"},
        {"fmt in a compiled source", "src/watch/logging_observer.cpp", "fmt/format.h"},
        {"request on wire", "src/link/request/event.hpp", "wire/reply.hpp"},
        {"request on a value that others read", "src/link/request/call.hpp", "atomic"},
        {"what sleeps on a call on threads", "src/link/request/signal.cpp", "thread"},
        {"link on requests", "src/link/background_link.hpp", "link/request/call.hpp"},
        {"link on wire", "src/link/background_link.cpp", "wire/codec.hpp"},
        {"link on Asio", "src/link/subscriber.hpp", "boost/asio/ip/tcp.hpp"},
        {"link on POSIX", "src/link/connect/stream.cpp", "sys/socket.h"},
        {"a neighbour", "src/link/connect/stream.cpp", "stream.hpp"},
        {"core on values", "src/core/machine/lock_answer.hpp", "redislock/clock.hpp"},
        {"core on scripts", "src/core/lock_kind.hpp", "wire/script.hpp"},
        {"core on requests", "src/core/machine/acquire_machine.hpp", "link/request/event.hpp"},
        {"core on core", "src/core/core.cpp", "core/machine/acquire_machine.hpp"},
        {"core on a container", "src/core/core.hpp", "boost/unordered/unordered_flat_set.hpp"},
        {"core on what its holds tell", "src/core/core.hpp", "redislock/stop_at.hpp"},
        {"core on a signal to others", "src/core/hold.hpp", "stop_token"},
        {"client on core", "src/client/engine.hpp", "core/core.hpp"},
        {"client on link", "src/client/engine.hpp", "link/connect/connector.hpp"},
        {"client on system", "src/client/engine.cpp", "values/system/process.hpp"},
        {"client on api", "src/client/lock/client.cpp", "redislock/client.hpp"},
        {"watch on client", "src/watch/explaining.cpp", "client/lock/thread_calls.hpp"},
        {"watch on link", "src/watch/inspector.hpp", "link/thread_link.hpp"},
        {"api on values", "include/redislock/client.hpp", "redislock/config.hpp"},
        {"api on api", "include/redislock/client.hpp", "redislock/redis_lock.hpp"},
        {"api on a forward declaration", "include/redislock/client.hpp", "redislock/fwd.hpp"},
        {"api on an erased handler", "include/redislock/redis_lock.hpp", "boost/asio/any_completion_handler.hpp"},
        {"the Boost check", "include/redislock/version.hpp.in", "boost/version.hpp"},
        {"prometheus on prometheus-cpp", "src/prometheus/series.hpp", "prometheus/counter.h"},
        {"prometheus on its observer", "src/prometheus/options.hpp", "redislock/prometheus_observer.hpp"},
        {"prometheus on how bytes are printed", "src/prometheus/a.cpp", "values/printable.hpp"},
        {"tool on api", "tool/watch.cpp", "redislock/redislock.hpp"},
        {"tool on its libraries", "tool/command.cpp", "CLI/CLI.hpp"},
        {"testing on POSIX", "include/redislock/testing/redis_server.hpp", "sys/wait.h"},
    };
    for (const Case& each : cases) {
        EXPECT_EQ(violation(each.file, each.target), "") << each.name;
    }
}

TEST(Layers, ArrowsThatGoUpOrSidewaysAreRefused)
{
    const Case cases[] = {
        {"values on api", "include/redislock/config.hpp", "redislock/client.hpp"},
        {"values on wire", "src/values/url.cpp", "wire/fault.hpp"},
        {"values on requests", "include/redislock/error.hpp", "link/request/event.hpp"},
        {"a public value on the inside", "include/redislock/error.hpp", "values/printable.hpp"},
        {"values on system", "src/values/url.cpp", "values/system/process.hpp"},
        {"values on Boost", "include/redislock/error.hpp", "boost/asio/error.hpp"},
        {"values on POSIX", "include/redislock/clock.hpp", "time.h"},
        {"values on mutex", "src/values/printable.hpp", "mutex"},
        {"wire on requests", "src/wire/codec.cpp", "link/request/event.hpp"},
        {"wire on link", "src/wire/codec.cpp", "link/connect/stream.hpp"},
        {"wire on core", "src/wire/codec.cpp", "core/machine/lock_answer.hpp"},
        {"wire on system", "src/wire/codec.cpp", "values/system/process.hpp"},
        {"wire on Boost", "src/wire/codec.cpp", "boost/asio/buffer.hpp"},
        {"OpenSSL elsewhere", "src/link/connect/stream.cpp", "openssl/ssl.h"},
        {"hiredis in a header", "src/wire/codec.hpp", "hiredis/hiredis.h"},
        {"hiredis elsewhere", "src/link/connect/stream.cpp", "hiredis/hiredis.h"},
        {"hiredis in the client", "src/client/engine.cpp", "hiredis/hiredis.h"},
        {"fmt in a header", "src/wire/fault.hpp", "fmt/format.h"},
        {"request on link", "src/link/request/event.hpp", "link/connect/stream.hpp"},
        {"request on core", "src/link/request/event.hpp", "core/machine/lock_answer.hpp"},
        {"request on the random device", "src/link/request/backoff.hpp", "random"},
        {"request on mutex", "src/link/request/signal.hpp", "mutex"},
        {"request on POSIX", "src/link/request/signal.hpp", "unistd.h"},
        {"request on Asio", "src/link/request/call.hpp", "boost/asio/post.hpp"},
        {"link on the core's locks", "src/link/background_link.hpp", "core/core.hpp"},
        {"link on a machine", "src/link/background_link.hpp", "core/machine/acquire_machine.hpp"},
        {"link on client", "src/link/background_link.hpp", "client/engine.hpp"},
        {"link on api", "src/link/background_link.hpp", "redislock/client.hpp"},
        {"core on link", "src/core/core.cpp", "link/connect/stream.hpp"},
        {"core on a connection", "src/core/hold.cpp", "link/background_link.hpp"},
        {"core on client", "src/core/core.cpp", "client/engine.hpp"},
        {"core on api", "src/core/core.hpp", "redislock/client.hpp"},
        {"core on system", "src/core/core.cpp", "values/system/process.hpp"},
        {"core on mutex", "src/core/share/waiter_queue.hpp", "mutex"},
        {"core on thread", "src/core/share/waiter_queue.hpp", "thread"},
        {"core on condition_variable", "src/core/machine/lock_answer.hpp", "condition_variable"},
        {"core on Asio", "src/core/core.cpp", "boost/asio/post.hpp"},
        {"core on POSIX", "src/core/machine/lock_answer.hpp", "sys/timerfd.h"},
        {"core on hiredis", "src/core/machine/lock_answer.hpp", "hiredis/hiredis.h"},
        {"core on fmt", "src/core/core.cpp", "fmt/format.h"},
        {"client on watch", "src/client/lock/lock.cpp", "watch/inspector.hpp"},
        {"client on prometheus-cpp", "src/client/engine.cpp", "prometheus/counter.h"},
        {"client on testing", "src/client/engine.cpp", "redislock/testing/redis_server.hpp"},
        {"watch on prometheus", "src/watch/inspector.cpp", "redislock/prometheus_observer.hpp"},
        {"prometheus on client", "src/prometheus/series.cpp", "client/engine.hpp"},
        {"prometheus on wire", "src/prometheus/series.cpp", "wire/reply.hpp"},
        {"prometheus on watch", "src/prometheus/series.cpp", "watch/inspector.hpp"},
        {"prometheus on fmt", "src/prometheus/series.cpp", "fmt/format.h"},
        {"tool on client", "tool/watch.cpp", "client/engine.hpp"},
        {"tool on watch", "tool/watch.cpp", "watch/inspector.hpp"},
        {"tool on hiredis", "tool/watch.cpp", "hiredis/hiredis.h"},
        {"api on what is not always there", "include/redislock/client.hpp", "redislock/prometheus_observer.hpp"},
        {"api on core", "include/redislock/redis_lock.hpp", "core/machine/lock_answer.hpp"},
        {"api on client", "include/redislock/client.hpp", "client/engine.hpp"},
        {"api on values of the inside", "include/redislock/client.hpp", "values/printable.hpp"},
        {"api on sockets", "include/redislock/client.hpp", "boost/asio/ip/tcp.hpp"},
        {"api on the whole of Asio", "include/redislock/client.hpp", "boost/asio.hpp"},
        {"api on fmt", "include/redislock/client.hpp", "fmt/format.h"},
        {"api on POSIX", "include/redislock/client.hpp", "unistd.h"},
        {"api on testing", "include/redislock/redislock.hpp", "redislock/testing/redis_server.hpp"},
        {"testing on the library", "include/redislock/testing/redis_server.hpp", "redislock/client.hpp"},
        {"a folder without a layer", "src/misc/helper.cpp", "vector"},
        {"a public folder without a layer", "include/redislock/detail/helper.hpp", "vector"},
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

} // namespace
} // namespace redislock::test
