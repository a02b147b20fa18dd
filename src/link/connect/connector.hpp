/// @file
/// Opens sockets that are connected, authenticated and ready.
#pragma once

#include "link/connect/connect_machine.hpp"
#include "link/connect/handshake_machine.hpp"
#include "link/connect/last_errors.hpp"
#include "link/connect/stream.hpp"
#include "redislock/clock.hpp"
#include "redislock/endpoint.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redislock::detail {

/// The result of an attempt: an open stream, or why there is none.
struct Connected {
    Stream stream;
    std::optional<Fault> fault;
};

class Attempt;

/// Opens connections to one endpoint, asynchronously, on the thread that runs the io_context. Host names are looked up
/// anew each time; addresses and unix sockets never reach the resolver. All addresses of a name are tried within one
/// attempt, and the first usable one wins; addresses that were found demoted come last.
class Connector {
public:
    /// @param lastErrors notes what the system, the resolver and the server say about failures
    Connector(boost::asio::io_context& io, Endpoint endpoint, Handshake handshake, std::chrono::milliseconds timeout,
              LastErrors& lastErrors)
        : io_(io),
          endpoint_(std::move(endpoint)),
          handshake_(std::move(handshake)),
          timeout_(timeout),
          lastErrors_(lastErrors)
    {
    }

    /// Starts one attempt at @p notBefore, or now, that takes at most @p limit, or the connector's time-out. Any
    /// thread. @p handler is called once on the io_context's thread, unless the io_context is stopped first. @param
    /// whose names the caller for hurry() @param reached called before, on the same thread, each time that the attempt
    /// gets further, with what it fails for if it comes no further: `lookupFailed`, `connectTimedOut`, `silent`
    void connect(
        const void* whose, TimePoint notBefore, std::chrono::milliseconds limit, std::function<void(Connected)> handler,
        std::function<void(Cause)> reached = [](Cause) {});

    /// Makes the attempts of that caller that have not begun begin at that time, or earlier. Any thread.
    void hurry(const void* whose, TimePoint when);

    /// Notes that the server at this address (Stream::peer()) takes no writes. Any thread.
    void demoted(std::string address);

    /// Whether demoted() was called for this address. On the io_context's thread.
    [[nodiscard]] bool isDemoted(const std::string& address) const { return demoted_.contains(address); }

    /// Notes what an answer on one of the connections says, if it is an error. Any thread.
    void noteReply(const Reply& reply) noexcept { lastErrors_.noteReply(reply); }

    /// After an exception on the io_context's thread, which may have interrupted any of them: the attempts under way
    /// fail.
    void recover();

    /// Ends the attempts under way without calling their handlers, and starts no more. On the io_context's thread.
    void close();

private:
    void endAttempts(void (Attempt::*how)());

    boost::asio::io_context& io_;
    Endpoint endpoint_;
    Handshake handshake_;
    std::chrono::milliseconds timeout_;
    LastErrors& lastErrors_;
    DemotedAddresses demoted_;
    std::size_t hangUps_ = 0; ///< in the middle of a handshake, since the last one that was complete
    std::vector<std::weak_ptr<Attempt>> attempts_;
    bool closed_ = false;
};

} // namespace redislock::detail
