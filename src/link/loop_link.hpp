/// @file
/// The driver of a connection that lives on the background thread.
#pragma once

#include "link/connect/alarm.hpp"
#include "link/connect/connector.hpp"
#include "link/connect/stream.hpp"
#include "link/protocol.hpp"
#include "redislock/clock.hpp"
#include "wire/codec.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace redislock::detail {

/// Drives a protocol with Asio. It decides nothing: it connects, writes, reads, and waits for time as the protocol asks
/// for it.
///
/// **Thread safety**: none; everything on the io_context's thread.
class LoopLink {
public:
    /// Called when the connection is there, and when it has ended or could not be made.
    using Report = std::function<void(bool up, Reason)>;

    /// Called with the address of a server that has answered that it is no master any more.
    using Demoted = std::function<void(const std::string& address)>;

    /// @param protocol not used before the first call. @param timeout for an attempt to connect
    LoopLink(boost::asio::io_context& io, Connector& connector, Protocol& protocol, std::chrono::milliseconds timeout,
             Report report, Demoted demoted = nullptr, ReplyLimits limits = {});
    LoopLink(const LoopLink&) = delete;
    LoopLink& operator=(const LoopLink&) = delete;
    virtual ~LoopLink();

    /// Does what the protocol asks for. To be called after each change of it.
    void work();
    /// Reads all that has come. To be called before a caller's time is judged.
    void catchUp();
    /// Lets an attempt to connect begin soon, for a caller that does not wait for the end of a long pause.
    void hurry();
    /// The address of the other side, as the system writes it; empty without a connection.
    [[nodiscard]] std::string peer() const { return stream_.peer(); }
    /// The server is at another address now: leaves the one here at once, without waiting for what is due.
    void cut();
    /// Gives the connection away. Only while it takes requests, and none is under way.
    Connected give();
    /// The server at this address is no master any more: leaves it when what is due has been answered.
    void leave(const std::string& address);
    /// After an exception, which may have interrupted anything: ends the connection, and makes another if that is
    /// needed.
    void recover();
    /// Ends the connection, and what waits for it, for good.
    void close();

protected:
    /// The connection has been made.
    virtual void whenOpened() {}
    /// An attempt has failed: now what waits for a connection will end.
    virtual void whenFailed() noexcept {}
    /// Replies have been given to the protocol.
    virtual void whenHeard() {}

private:
    enum class Taken { something, nothing, end };

    void connect(TimePoint notBefore);
    void opened(Connected result);
    void replacement(Connected result);
    void changeOver();
    void write();
    void waitToWrite();
    void waitToRead();
    Taken readWhatCame();
    Taken takeReplies();
    void timeOver();
    Stream take();
    void lose(Fault fault);

    boost::asio::io_context& io_;
    Connector& connector_;
    Protocol& protocol_;
    const std::chrono::milliseconds timeout_;
    const Report report_;
    const Demoted demoted_;
    const ReplyLimits limits_;
    Stream stream_;
    Stream next_;                                                     ///< takes the place of the other one
    std::optional<boost::asio::posix::stream_descriptor> descriptor_; ///< waits on the stream's handle; does not own it
    std::optional<ReplyReader> reader_;
    std::string writing_;
    std::size_t written_ = 0;
    bool waitsToWrite_ = false;
    Alarm timer_;
    TimePoint timerAt_ = TimePoint::max();
    using Buffer = std::array<char, std::size_t{16} * 1024>;
    std::unique_ptr<Buffer> buffer_; ///< from the first connection on: many nodes never have one
    Reply reply_;
    std::uint64_t generation_ = 0; ///< of the connection: waits on an earlier one mean nothing
};

} // namespace redislock::detail
