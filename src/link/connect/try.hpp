/// @file
/// One address on its way to a usable connection.
#pragma once

#include "link/connect/handshake_machine.hpp"
#include "link/connect/last_errors.hpp"
#include "link/connect/stream.hpp"
#include "wire/codec.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

/// Tries one address: drives a HandshakeMachine over Asio.
///
/// Belongs to an attempt, which `keep` keeps alive while an operation is under way. After its end it tells nothing
/// more.
class Try {
public:
    using Protocol = boost::asio::generic::stream_protocol;
    using End = std::function<void(const std::optional<Fault>&)>;
    using Keep = std::shared_ptr<void>;

    /// @param tls null: none. @param where goes before words about this address. @param taken called when the
    /// connection is open
    Try(boost::asio::io_context& io, const HandshakeMachine& machine, std::unique_ptr<TlsSession> tls,
        LastErrors& lastErrors, std::string where, std::function<void()> taken, End end);
    Try(const Try&) = delete;
    Try& operator=(const Try&) = delete;
    ~Try() { leaveDescriptor(); }

    void open(const Keep& keep, const Protocol::endpoint& address);
    /// The connection, once it is usable.
    Stream take();
    void cancel();
    [[nodiscard]] const char* warning() const noexcept { return machine_.warning(); }
    /// What a node of a cluster said of the slots; null: nothing.
    [[nodiscard]] const Reply* slots() const noexcept { return machine_.slots(); }
    /// Whether the connection is there, and TLS not agreed on.
    [[nodiscard]] bool isSecuring() const noexcept
    {
        return isSecured_ && stream_.isOpen() && machine_.state() == HandshakeMachine::State::opening;
    }

private:
    void leaveDescriptor();
    void notOpened(const Keep& keep, const boost::system::error_code& ec);
    void opened(const Keep& keep);
    void secure(const Keep& keep);
    template <class Then>
    void wait(const Keep& keep, bool toWrite, Then then);
    void closed(const Keep& keep);
    bool step(const Keep& keep, const HandshakeMachine::Event& event);
    void send(const Keep& keep, const std::vector<HandshakeMachine::Command>& commands);
    void write(const Keep& keep);
    void read(const Keep& keep);
    void received(const Keep& keep, std::size_t bytes);
    void garbled(const Keep& keep, std::string_view bytes);

    Protocol::socket socket_; ///< until it is connected
    Stream stream_;
    boost::asio::posix::stream_descriptor descriptor_; ///< waits for the stream, does not own it
    HandshakeMachine machine_;
    std::unique_ptr<TlsSession> tls_; ///< until the stream has it
    const bool isSecured_;
    LastErrors& lastErrors_;
    const std::string where_;
    const std::function<void()> taken_;
    End end_;
    std::string request_;
    std::size_t written_ = 0;
    std::array<char, 4096> buffer_{};
    ReplyReader reader_{{1UL << 20U, 16UL << 20U}}; // a cluster may have each slot at another node
};

} // namespace redislock::detail
