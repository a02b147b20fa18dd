/// @file
/// Opens sockets that are connected, authenticated and ready.
#pragma once

#include "link/connect/connect_machine.hpp"
#include "link/connect/credentials_calls.hpp"
#include "link/connect/handshake_machine.hpp"
#include "link/connect/last_errors.hpp"
#include "link/connect/locator.hpp"
#include "link/connect/stream.hpp"
#include "link/tls/tls_files.hpp"
#include "redislock/clock.hpp"
#include "redislock/config.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

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
    TimePoint replaceAt = TimePoint::max(); ///< when another is to take its place; max(): never
};

class Attempt;

/// Opens connections to one server, asynchronously, on the thread that runs the io_context. Host names are looked up
/// anew each time; addresses and unix sockets never reach the resolver. All addresses of a name are tried within one
/// attempt, and the first usable one wins.
class Connector {
public:
    /// @param name of the connections. @param lastErrors notes what the system, the resolver and the server say about
    /// failures. @param warn called on the io_context's thread with what an operator should know. @throws LockError for
    /// files of Config::tls that cannot be used, see TlsFiles
    Connector(boost::asio::io_context& io, const Config& config, const std::string& name, LastErrors& lastErrors,
              std::function<void(std::string what)> warn, ServerKind kind = ServerKind::master);

    /// From now on this one is asked for the server's address. Before the first call.
    void locateBy(Locator& locator) noexcept { locator_ = &locator; }

    /// Starts one attempt at @p notBefore, or now, that takes at most @p limit, or the connector's time-out, and before
    /// that the time of a call for credentials. Any thread. @p handler is called once on the io_context's thread,
    /// unless the io_context is stopped first. An attempt of the same caller that has not begun is called off: its
    /// handler is not called. @param whose names the caller for that, and for hurry() @param reached called before, on
    /// the same thread, each time that the attempt gets further, with what it fails for if it comes no further:
    /// `lookupFailed`, `connectTimedOut`, `silent`
    void connect(
        const void* whose, TimePoint notBefore, std::chrono::milliseconds limit, std::function<void(Connected)> handler,
        std::function<void(Cause)> reached = [](Cause) {});

    /// Makes the attempts of that caller that have not begun begin at that time, or earlier. Any thread.
    void hurry(const void* whose, TimePoint when);

    /// Finds out whether the server at another address is usable; the connection is closed again. @p handler is called
    /// as that of connect(). On the io_context's thread.
    void probe(const Endpoint& at, std::function<void(const std::optional<Fault>&)> handler);

    /// The server is at another address now: attempts under way begin again, those that wait begin. On the
    /// io_context's thread.
    void beginAgain();

    /// Notes what an answer on one of the connections says, if it is an error. @param of the request; null: not known.
    /// Any thread.
    void noteReply(const Reply& reply, const Call* of) noexcept
    {
        if (reply.isError() && locator_ != nullptr) {
            locator_->noted(reply);
        }
        lastErrors_.noteReply(reply, of);
    }

    /// After an exception on the io_context's thread, which may have interrupted any of them: the attempts under way
    /// fail.
    void recover();

    /// Ends the attempts under way without calling their handlers, and starts no more. On the io_context's thread.
    void close();

private:
    friend class Attempt;

    void warnOnce(const char* what);
    void endAttempts(void (Attempt::*how)());
    void start(const std::shared_ptr<Attempt>& attempt, TimePoint notBefore, std::chrono::milliseconds limit);
    std::unique_ptr<TlsSession> secured(const Endpoint& server);

    boost::asio::io_context& io_;
    const Endpoint endpoint_; ///< unless there is a locator
    Locator* locator_ = nullptr;
    const Handshake handshake_;
    const std::chrono::milliseconds timeout_;
    LastErrors& lastErrors_;
    const std::function<void(std::string what)> warn_;
    std::optional<TlsFiles> tls_;
    boost::asio::steady_timer tlsTimer_; ///< until the files are to be looked at again
    std::size_t hangUps_ = 0;            ///< in the middle of a handshake, since the last one that was complete
    std::vector<std::weak_ptr<Attempt>> attempts_;
    std::optional<CredentialsCalls> credentials_; ///< none: the handshake has them
    bool hasConnected_ = false;
    bool hasWarned_ = false;
    bool closed_ = false;
};

} // namespace redislock::detail
