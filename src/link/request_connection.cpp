#include "link/request_connection.hpp"

#include "values/system/process.hpp"
#include "wire/command.hpp"

#include <boost/asio/steady_timer.hpp>

#include <utility>

namespace redislock::detail {

namespace {

/// For pages of keys, and hashes of other programs: larger than what a client asks about its own locks.
constexpr ReplyLimits inspectionLimits{64UL * 1024, 64UL * 1024 * 1024};

Handshake handshakeFor(const Config& config, const std::string& name)
{
    return {config.username, config.password, config.database, name};
}

} // namespace

Pipeline& Pipeline::add(const std::vector<std::string>& words)
{
    appendHeader(bytes_, '*', words.size());
    for (const auto& word : words) {
        appendArgument(bytes_, std::string_view(word));
    }
    ++size_;
    return *this;
}

RequestConnection::RequestConnection(const Config& config, const std::string& name, LastErrors& lastErrors)
    : timeout_(config.commandTimeout),
      lastErrors_(lastErrors),
      connector_(io_, config.endpoint, handshakeFor(config, name), config.connectTimeout, lastErrors),
      reader_(inspectionLimits)
{
    const boost::asio::steady_timer opens(io_); // the descriptors of the io_context now, not with its first use
}

std::optional<Fault> RequestConnection::open()
{
    const Uncancelled held;
    if (stream_.isOpen() && stream_.readSome(buffer_).status == Transferred::Status::wouldBlock) {
        return std::nullopt;
    }
    stream_.close();
    const auto result =
        std::make_shared<std::optional<Connected>>(); // kept by an attempt that an exception leaves over
    connector_.connect(this, BootClock::now(), std::chrono::milliseconds::max(),
                       [result](Connected connected) { *result = std::move(connected); });
    io_.restart();
    while (!*result && io_.run_one() > 0) {
    }
    if (!*result || (*result)->fault) {
        return *result ? (*result)->fault : Fault{};
    }
    stream_ = std::move((*result)->stream);
    reader_ = ReplyReader(inspectionLimits);
    return std::nullopt;
}

std::optional<Fault> RequestConnection::ask(const Pipeline& requests, std::vector<Reply>& replies)
{
    const Uncancelled held;
    replies.clear();
    replies.reserve(requests.size());
    if (auto failed = send(requests.bytes())) {
        return failed;
    }
    while (replies.size() < requests.size()) {
        Reply reply;
        const auto status = reader_.next(reply);
        if (status == ReplyReader::Status::complete) {
            lastErrors_.noteReply(reply);
            replies.push_back(std::move(reply));
            continue;
        }
        if (status == ReplyReader::Status::broken) {
            return endGarbled();
        }
        std::string_view bytes;
        if (auto failed = receive(bytes)) {
            return failed;
        }
        reader_.feed(bytes);
    }
    return std::nullopt;
}

std::optional<Fault> RequestConnection::askForLines(const Pipeline& request,
                                                    const std::function<void(std::string_view)>& onLine,
                                                    std::optional<Reply>& refusal)
{
    const Uncancelled held;
    if (auto failed = send(request.bytes())) {
        return failed;
    }
    BulkLines lines;
    for (auto status = BulkLines::Status::needMore; status == BulkLines::Status::needMore;) {
        std::string_view bytes;
        if (auto failed = receive(bytes)) {
            return failed;
        }
        status = lines.feed(bytes, onLine);
        if (status == BulkLines::Status::broken) {
            return endGarbled();
        }
        if (status == BulkLines::Status::refused) {
            refusal.emplace();
            refusal->kind = Reply::Kind::error;
            refusal->text = lines.error();
            lastErrors_.noteReply(*refusal);
        }
    }
    return std::nullopt;
}

std::optional<Fault> RequestConnection::send(std::string_view bytes)
{
    TimePoint until = BootClock::now() + timeout_;
    while (!bytes.empty()) {
        const auto sent = stream_.writeSome(bytes);
        if (sent.status == Transferred::Status::closed || BootClock::now() >= until) {
            return end({Failure::lostReply, Cause::connectionLost});
        }
        if (sent.status == Transferred::Status::ok) {
            bytes.remove_prefix(sent.bytes);
            until = BootClock::now() + timeout_;
            continue;
        }
        // the server may be writing already: it must not wait for this side to read
        const auto read = stream_.readUntil(until, buffer_, true, false);
        if (read.status == Transferred::Status::closed) {
            return end({Failure::lostReply, Cause::connectionLost});
        }
        reader_.feed({buffer_.data(), read.bytes});
    }
    return std::nullopt;
}

/// The next bytes, whose view is valid until the next call.
std::optional<Fault> RequestConnection::receive(std::string_view& bytes)
{
    const TimePoint until = BootClock::now() + timeout_;
    for (;;) {
        const auto read = stream_.readUntil(until, buffer_, false, false);
        if (read.status == Transferred::Status::ok) {
            bytes = {buffer_.data(), read.bytes};
            return std::nullopt;
        }
        if (read.status == Transferred::Status::closed) {
            return end({Failure::lostReply, Cause::connectionLost});
        }
        if (BootClock::now() >= until) {
            return end({Failure::lostReply, Cause::silent});
        }
    }
}

Fault RequestConnection::end(Fault fault)
{
    stream_.discardUndelivered();
    stream_.close();
    return fault;
}

} // namespace redislock::detail
