/// @file
/// A connection that lives on the background thread.
#pragma once

#include "link/connect/alarm.hpp"
#include "link/connect/connector.hpp"
#include "link/connect/stream.hpp"
#include "link/reconnect_policy.hpp"
#include "redislock/clock.hpp"
#include "redislock/random.hpp"
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

/// A connection driven by Asio, with a time limit for answers; it does not know what is asked. It connects when its
/// owner needs it, and again, by its ReconnectPolicy, as long as the owner needs it.
///
/// **Thread safety**: none; everything on the io_context's thread.
class AsyncConnection {
public:
    /// What the connection tells its owner.
    class Owner {
    public:
        virtual ~Owner() = default;
        virtual void onConnected() = 0;
        /// @return false when the reply makes no sense: then the connection is closed.
        virtual bool onReply(Reply& reply) = 0;
        /// The connection ended, or could not be made; onConnected() follows if it is still needed.
        virtual void onDisconnected(Fault fault) = 0;
        /// Whether a lost connection must be made again.
        virtual bool needed() const = 0;
        /// When the oldest unanswered request was sent; max() if none.
        virtual TimePoint oldestSent() const = 0;
    };

    AsyncConnection(boost::asio::io_context& io, Connector& connector, Owner& owner, std::chrono::milliseconds timeout,
                    std::uint64_t seed);
    ~AsyncConnection();

    /// Connects if that is needed and not yet done.
    void open();
    /// The same, for a caller that does not wait for the end of a long pause.
    void hurry();
    /// Appends bytes and writes what the socket takes. Only while connected.
    void send(const std::string& bytes);
    void close(Fault fault);
    /// Gives the connection away. Only while connected, and when nothing is unanswered. The owner is not told.
    Stream take();
    /// Ends the connection for good.
    void end(Fault fault);
    /// After an exception, which may have interrupted anything: ends the connection, and makes another if that is
    /// needed.
    void recover();
    /// Whether nothing has arrived that is still unread. Ask before sending while no request is under way: what has
    /// come then belongs to no request.
    [[nodiscard]] bool isSilent();

    [[nodiscard]] bool isConnected() const noexcept { return state_ == State::connected; }
    /// Why there is no connection, while there is none.
    [[nodiscard]] Reason absence() const noexcept { return absence_; }
    /// A command was answered: the connection works.
    void served() noexcept { policy_.served(); }
    /// Notes what an answer says, if it is an error.
    void noteReply(const Reply& reply) noexcept { connector_.noteReply(reply); }
    /// The server takes no writes: other addresses of the name are tried before its own.
    void demoted() { connector_.demoted(stream_.peer()); }
    /// The client has found another server: leaves a server that was found demoted. @param found the other one's
    /// address
    void follow(const std::string& found);

private:
    enum class State { disconnected, connecting, connected };

    void opened(Connected result);
    void write();
    void waitRead();
    void read();
    enum class Taken { something, nothing, end };
    Taken readWhatCame();
    void armTimeout();
    void timeOver();
    [[nodiscard]] bool isOverdue() const;

    boost::asio::io_context& io_;
    Connector& connector_;
    Owner& owner_;
    const std::chrono::milliseconds timeout_;
    Random random_;
    ReconnectPolicy policy_;
    State state_ = State::disconnected;
    Reason absence_ = Cause::connectTimedOut;
    Stream stream_;
    std::optional<boost::asio::posix::stream_descriptor> descriptor_; ///< waits on the stream's handle; does not own it
    std::optional<ReplyReader> reader_;
    std::string writing_;
    std::size_t written_ = 0;
    bool waitingToWrite_ = false;
    Alarm timer_;
    bool timerArmed_ = false;
    std::array<char, std::size_t{16} * 1024> buffer_;
    Reply reply_;
    std::uint64_t generation_ = 0;
};

} // namespace redislock::detail
