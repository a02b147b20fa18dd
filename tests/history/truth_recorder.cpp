#include "history/truth_recorder.hpp"

#include "support/eventually.hpp"
#include "support/raw_redis.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <stdexcept>
#include <string>
#include <system_error>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redislock::test::history {
namespace {

int connectTo(const std::string& host, std::uint16_t port)
{
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        const int error = errno;
        ::close(fd);
        throw std::system_error(error, std::generic_category(), "replica: connect");
    }
    return fd;
}

void sendAll(int socket, const std::string& bytes)
{
    if (::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
        throw std::system_error(errno, std::generic_category(), "replica: send");
    }
}

Nanoseconds wallMinusBoot()
{
    // Takes the closest of several pairs, because the thread may be interrupted between two readings.
    Nanoseconds best = 0;
    Nanoseconds closest = -1;
    for (int i = 0; i < 20; ++i) {
        const auto before = bootTime().count();
        timespec wall{};
        ::clock_gettime(CLOCK_REALTIME, &wall);
        const auto after = bootTime().count();
        if (closest < 0 || after - before < closest) {
            closest = after - before;
            best = wall.tv_sec * 1'000'000'000 + wall.tv_nsec - before - closest / 2;
        }
    }
    return best;
}

} // namespace

TruthRecorder::TruthRecorder(const testing::RedisServer& server, std::shared_ptr<Recorder> recorder, int stream)
    : server_(server), recorder_(std::move(recorder)), translator_(stream)
{
}

void TruthRecorder::attach()
{
    detach();
    ending_ = streaming_ = failed_ = false;
    socket_ = connectTo(server_.host(), server_.port());
    // A replica without capabilities gets the snapshot with its length before it.
    sendAll(socket_, "*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n");
    thread_ = std::thread([this] { run(); });
    if (!eventually([this] { return streaming_ || failed_; }, std::chrono::seconds(10)) || failed_) {
        throw std::runtime_error("replica: the stream did not begin");
    }
    recorder_->write({.op = Op::attached, .offset = offset_.load()});
}

bool TruthRecorder::awaitCaughtUp(std::chrono::milliseconds timeout)
{
    RawRedis redis(server_);
    const auto goal = std::stoll(redis.info("master_repl_offset"));
    return eventually([&] { return offset_ >= goal || failed_; }, timeout) && !failed_;
}

void TruthRecorder::detach() noexcept
{
    ending_ = true;
    if (thread_.joinable()) {
        ::shutdown(socket_, SHUT_RDWR);
        thread_.join();
        ::close(socket_);
        socket_ = -1;
    }
}

void TruthRecorder::run() noexcept
{
    std::string why;
    try {
        ReplicationStream stream;
        while (!ending_) {
            readSome(stream);
        }
    } catch (const std::exception& error) {
        why = error.what();
        failed_ = !ending_;
    }
    recorder_->write({.op = Op::detached, .error = why});
}

void TruthRecorder::readSome(ReplicationStream& stream)
{
    constexpr int patienceMs = 500;
    pollfd readable{socket_, POLLIN, 0};
    if (::poll(&readable, 1, patienceMs) <= 0) {
        return acknowledge();
    }
    std::array<char, 64UL * 1024> bytes{};
    const auto count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    const auto now = bootTime().count();
    if (count <= 0) {
        throw std::runtime_error("replica: the server hung up");
    }
    stream.feed({bytes.data(), static_cast<std::size_t>(count)});
    while (const auto command = stream.next()) {
        for (auto& record : translator_.translate(*command)) {
            record.t = now;
            recorder_->write(std::move(record));
        }
    }
    offset_ = stream.offset();
    streaming_ = stream.streaming();
    if (now - acknowledged_ >= patienceMs * 1'000'000) { // of a server that is never silent
        acknowledge();
    }
}

/// Without this acknowledgement the server takes the replica for dead.
void TruthRecorder::acknowledge()
{
    acknowledged_ = bootTime().count();
    if (streaming_) {
        const auto offset = std::to_string(offset_);
        sendAll(socket_,
                "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$" + std::to_string(offset.size()) + "\r\n" + offset + "\r\n");
    }
}

void TruthRecorder::recordClock(Recorder& recorder)
{
    recorder.write({.op = Op::clock, .offset = wallMinusBoot()});
}

} // namespace redislock::test::history
