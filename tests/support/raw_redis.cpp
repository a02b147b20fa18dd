#include "support/raw_redis.hpp"

#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redislock::test {
namespace {

using std::chrono::milliseconds;

Value toValue(const redisReply& reply)
{
    Value value;
    switch (reply.type) {
    case REDIS_REPLY_INTEGER:
        value.kind = Value::Kind::integer;
        value.number = reply.integer;
        return value;
    case REDIS_REPLY_ARRAY:
        value.kind = Value::Kind::array;
        for (std::size_t i = 0; i < reply.elements; ++i) {
            value.elements.push_back(toValue(*reply.element[i]));
        }
        return value;
    case REDIS_REPLY_NIL:
        return value;
    case REDIS_REPLY_STATUS:
        value.kind = Value::Kind::status;
        break;
    case REDIS_REPLY_ERROR:
        value.kind = Value::Kind::error;
        break;
    default:
        value.kind = Value::Kind::string;
    }
    value.characters.assign(reply.str, static_cast<std::size_t>(reply.len));
    return value;
}

[[noreturn]] void wrongKind(const char* wanted, const Value& value)
{
    std::ostringstream message;
    message << "Redis answered " << value << ", the test expected " << wanted;
    throw std::logic_error(message.str());
}

/// Waits for @p events on @p socket. @return false when the time is over.
bool awaitSocket(int socket, short events, milliseconds timeout)
{
    const Stopwatch watch;
    for (;;) {
        const auto left = std::max<milliseconds>(timeout - watch.elapsedMs(), milliseconds(0));
        pollfd entry{socket, events, 0};
        const int ready = ::poll(&entry, 1, static_cast<int>(left.count()));
        if (ready > 0 || left.count() == 0) {
            return ready > 0;
        }
    }
}

std::string lineValue(const std::string& text, const std::string& prefix)
{
    const auto at = text.starts_with(prefix) ? 0 : text.find("\n" + prefix);
    if (at == std::string::npos) {
        return {};
    }
    const auto begin = at + prefix.size() + (at == 0 ? 0 : 1);
    return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

} // namespace

std::int64_t Value::integer() const
{
    if (!isInteger()) {
        wrongKind("an integer", *this);
    }
    return number;
}

const std::string& Value::text() const
{
    if (!isString() && !isStatus() && !isError()) {
        wrongKind("a text", *this);
    }
    return characters;
}

std::ostream& operator<<(std::ostream& out, const Value& value)
{
    switch (value.kind) {
    case Value::Kind::nil:
        return out << "(nil)";
    case Value::Kind::integer:
        return out << value.number;
    case Value::Kind::string:
        return out << '"' << value.characters << '"';
    case Value::Kind::status:
        return out << value.characters;
    case Value::Kind::error:
        return out << "(error) " << value.characters;
    case Value::Kind::array:
        break;
    }
    const char* separator = "";
    out << '[';
    for (const auto& element : value.elements) {
        out << std::exchange(separator, ", ") << element;
    }
    return out << ']';
}

void RawRedis::ReaderDeleter::operator()(redisReader* reader) const noexcept
{
    ::redisReaderFree(reader);
}

RawRedis::RawRedis(const testing::RedisServer& server)
    : host_(server.host()),
      port_(server.plainPort()),
      unixSocket_(server.plainPort() == 0 ? server.unixSocket() : ""),
      password_(server.password())
{
}

RawRedis::RawRedis(std::string host, std::uint16_t port, std::string password)
    : host_(std::move(host)), port_(port), password_(std::move(password))
{
}

RawRedis::RawRedis(std::string unixSocket, std::string password)
    : unixSocket_(std::move(unixSocket)), password_(std::move(password))
{
}

RawRedis::RawRedis(RawRedis&& other) noexcept
{
    *this = std::move(other);
}

RawRedis& RawRedis::operator=(RawRedis&& other) noexcept
{
    if (this != &other) {
        disconnect();
        host_ = std::move(other.host_);
        port_ = other.port_;
        unixSocket_ = std::move(other.unixSocket_);
        password_ = std::move(other.password_);
        timeout_ = other.timeout_;
        socket_ = std::exchange(other.socket_, -1);
        reader_ = std::move(other.reader_);
    }
    return *this;
}

RawRedis::~RawRedis()
{
    disconnect();
}

Value RawRedis::command(std::initializer_list<std::string_view> arguments)
{
    if (!nodes_.empty()) {
        return commandInCluster(Arguments(arguments.begin(), arguments.end()));
    }
    send(arguments);
    return receive();
}

Value RawRedis::command(const Arguments& arguments)
{
    if (!nodes_.empty()) {
        return commandInCluster(arguments);
    }
    send(arguments);
    return receive();
}

void RawRedis::joinCluster(const std::vector<std::uint16_t>& ports)
{
    for (const auto port : ports) {
        nodes_[port] = std::make_unique<RawRedis>(host_, port, password_);
    }
}

Value RawRedis::commandInCluster(Arguments arguments)
{
    if (arguments[0] == "PUBLISH") {
        arguments[0] = "SPUBLISH";
    }
    if (arguments[0] == "PUBSUB") {
        arguments[1] = arguments[1] == "NUMSUB" ? "SHARDNUMSUB" : "SHARDCHANNELS";
    }
    if (arguments[0] == "PUBSUB" || arguments[0] == "KEYS") {
        Value all;
        for (const auto& [port, node] : nodes_) {
            auto answer = node->command(arguments);
            if (all.elements.empty() || arguments[1] != "SHARDNUMSUB") {
                all.kind = answer.kind;
                for (auto& element : answer.elements) { // replicas have the keys too
                    if (std::ranges::find(all.elements, element) == all.elements.end()) {
                        all.elements.push_back(std::move(element));
                    }
                }
            } else {
                all.elements.at(1).number += answer.elements.at(1).number;
            }
        }
        return all;
    }
    auto answer = nodes_.begin()->second->command(arguments);
    while (answer.isError() && answer.text().starts_with("MOVED ")) {
        const auto port = std::stoul(answer.text().substr(answer.text().rfind(':') + 1));
        answer = nodes_.at(static_cast<std::uint16_t>(port))->command(arguments);
    }
    return answer;
}

void RawRedis::send(std::initializer_list<std::string_view> arguments)
{
    sendCommand(arguments);
}

void RawRedis::send(const Arguments& arguments)
{
    sendCommand(arguments);
}

template <class Range>
void RawRedis::sendCommand(const Range& arguments)
{
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const auto& argument : arguments) {
        texts.push_back(argument.data());
        sizes.push_back(argument.size());
    }
    char* bytes = nullptr;
    const auto size = ::redisFormatCommandArgv(&bytes, static_cast<int>(texts.size()), texts.data(), sizes.data());
    if (size < 0) {
        throw std::runtime_error("hiredis cannot format the command");
    }
    const std::unique_ptr<char, void (*)(char*)> owner(bytes, [](char* text) { ::redisFreeCommand(text); });
    sendBytes({bytes, static_cast<std::size_t>(size)});
}

void RawRedis::sendBytes(std::string_view bytes)
{
    connectIfClosed();
    write(bytes);
}

std::optional<Value> RawRedis::receive(milliseconds timeout)
{
    if (socket_ < 0) {
        fail("is not connected");
    }
    const Stopwatch watch;
    for (;;) {
        void* reply = nullptr;
        if (::redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
            fail(std::string("did not send RESP: ") + reader_->errstr);
        }
        if (reply != nullptr) {
            const std::unique_ptr<void, void (*)(void*)> owner(reply, ::freeReplyObject);
            return toValue(*static_cast<redisReply*>(reply));
        }
        const auto left = std::max<milliseconds>(timeout - watch.elapsedMs(), milliseconds(0));
        if (!awaitSocket(socket_, POLLIN, left)) {
            return std::nullopt;
        }
        std::array<char, 16384> buffer{};
        const auto size = ::recv(socket_, buffer.data(), buffer.size(), 0);
        if (size <= 0) {
            fail(size == 0 ? "closed the connection" : std::string("failed: ") + std::strerror(errno));
        }
        ::redisReaderFeed(reader_.get(), buffer.data(), static_cast<std::size_t>(size));
    }
}

Value RawRedis::receive()
{
    auto value = receive(timeout_);
    if (!value) {
        fail("did not answer within " + std::to_string(timeout_.count()) + " ms");
    }
    return *std::move(value);
}

void RawRedis::disconnect() noexcept
{
    if (socket_ >= 0) {
        ::close(std::exchange(socket_, -1));
    }
    reader_.reset();
}

void RawRedis::connectIfClosed()
{
    if (socket_ >= 0 && peerClosed()) {
        disconnect();
    }
    if (socket_ < 0) {
        connect();
    }
}

bool RawRedis::peerClosed() const noexcept
{
    char byte = 0;
    const auto size = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
}

void RawRedis::connect()
{
    const timeval limit{timeout_.count() / 1000, (timeout_.count() % 1000) * 1000};
    const std::unique_ptr<redisContext, void (*)(redisContext*)> context(
        unixSocket_.empty() ? ::redisConnectWithTimeout(host_.c_str(), port_, limit)
                            : ::redisConnectUnixWithTimeout(unixSocket_.c_str(), limit),
        ::redisFree);
    if (!context || context->err != 0) {
        fail(std::string("cannot be reached: ") + (context ? context->errstr : "out of memory"));
    }
    // hiredis writes without MSG_NOSIGNAL, so the socket is used without its context.
    socket_ = ::fcntl(context->fd, F_DUPFD_CLOEXEC, 0);
    reader_.reset(::redisReaderCreate());
    if (!password_.empty()) {
        write("*2\r\n$4\r\nAUTH\r\n$" + std::to_string(password_.size()) + "\r\n" + password_ + "\r\n");
        if (const auto answer = receive(); answer.isError()) {
            fail("refused the password: " + answer.text());
        }
    }
}

void RawRedis::write(std::string_view bytes)
{
    while (!bytes.empty()) {
        const auto size = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(size));
        } else if (errno == EAGAIN) {
            if (!awaitSocket(socket_, POLLOUT, timeout_)) {
                fail("did not take the request");
            }
        } else if (errno != EINTR) {
            fail(std::string("failed: ") + std::strerror(errno));
        }
    }
}

void RawRedis::fail(const std::string& what)
{
    disconnect();
    const auto name = unixSocket_.empty() ? host_ + ":" + std::to_string(port_) : unixSocket_;
    throw std::runtime_error("Redis at " + name + " " + what);
}

std::map<std::string, std::string> RawRedis::hash(std::string_view name)
{
    const auto answer = command({"HGETALL", name});
    if (!answer.isArray()) {
        wrongKind("a hash", answer);
    }
    std::map<std::string, std::string> fields;
    for (std::size_t i = 0; i + 1 < answer.elements.size(); i += 2) {
        fields[answer.elements[i].text()] = answer.elements[i + 1].text();
    }
    return fields;
}

milliseconds RawRedis::pttl(std::string_view name)
{
    return milliseconds(command({"PTTL", name}).integer());
}

bool RawRedis::exists(std::string_view name)
{
    return command({"EXISTS", name}).integer() == 1;
}

std::optional<std::string> RawRedis::get(std::string_view name)
{
    const auto answer = command({"GET", name});
    return answer.isNil() ? std::nullopt : std::optional(answer.text());
}

std::uint64_t RawRedis::commandCalls(std::string_view name)
{
    std::uint64_t all = 0;
    for (const auto& [port, node] : nodes_) {
        all += node->commandCalls(name);
    }
    if (!nodes_.empty()) {
        return all;
    }
    const auto statistics = command({"INFO", "commandstats"}).text();
    const auto calls = lineValue(statistics, "cmdstat_" + std::string(name) + ":calls=");
    return std::strtoull(calls.c_str(), nullptr, 10); // up to the comma; 0 when the command never ran
}

std::string RawRedis::info(std::string_view field)
{
    const auto everything = command({"INFO", "all"}).text();
    const auto prefix = std::string(field) + ":";
    if (!everything.starts_with(prefix) && everything.find("\n" + prefix) == std::string::npos) {
        throw std::runtime_error("INFO has no field " + std::string(field));
    }
    return lineValue(everything, prefix);
}

} // namespace redislock::test
