/// @file
/// One server, and the connections to it.
#pragma once

#include "link/background_link.hpp"
#include "link/call_link.hpp"
#include "link/connect/alarm.hpp"
#include "link/connect/connector.hpp"
#include "link/sentinel/sentinel_watch.hpp"
#include "link/subscriber.hpp"
#include "link/thread_link.hpp"
#include "redislock/config.hpp"
#include "wire/fault.hpp"
#include "wire/slot.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

namespace redislock::detail {

/// A server's connections: one for the calls of threads, one for renewals and asynchronous calls, one for what is
/// published, one that waits for replicas. Each is made when it is first needed, and again, by its own rules, when it
/// has ended.
///
/// **Thread safety**: `commands` is safe; everything else on the io_context's thread, except that any thread may set
/// alarms.
class Node {
public:
    /// Who is told. Any thread, perhaps under the mutex of a connection: what is done must only be posted.
    struct Listener {
        /// The connection for @p purpose is there, or why it is not.
        std::function<void(const char* purpose, bool up, Reason error)> report;
        /// A connection has ended, or could not be made.
        std::function<void()> ended;
        /// A connection is there again that had ended, perhaps at a server that has lost its data; or another server is
        /// the master now. @param where the slots concerned; null: all
        std::function<void(const SlotSet* where)> madeAgain;
        /// On the io_context's thread: what an operator should know.
        std::function<void(std::string what)> warned;
    };

    /// @param place where the node of a cluster is; null: the configuration says where the server is
    Node(boost::asio::io_context& io, const Config& config, const std::string& connectionName, LastErrors& lastErrors,
         const Listener& listener, Locator* place = nullptr);
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    /// Has the replies read, a little later, for which nobody waits. Any thread.
    void sweepSoon() noexcept;

    /// Another node may have what was asked for here: what is meant for another, and was not sent yet, ends as `moved`.
    /// @param leaves ends the connections too, with all that is due
    void handOn(const Link::IsElsewhere& isElsewhere, bool leaves);
    /// Nothing is asked for here any more: ends the connections.
    void letGo();
    /// When the oldest request was sent that has no answer; max(): there is none.
    [[nodiscard]] TimePoint owesSince() { return std::min(commands.owesSince(), renewals.owesSince()); }
    /// Keeps a connection, or no longer, on which the end of the server is heard of. @return whether that may have gone
    /// unheard until now
    bool keep(bool on);

    /// After an exception on the thread, which may have interrupted anything.
    void recover();
    void close();

private:
    boost::asio::io_context& io_;
    const std::function<void(const SlotSet*)> madeAgain_;

public:
    Connector connector;
    ThreadLink commands;
    BackgroundLink renewals;
    Subscriber subscriber;
    CallLink confirmations;

private:
    [[nodiscard]] ThreadLink::Background hooks(const Listener& listener);
    void connected(Connected result);
    void moved();
    void demotedSoon(const std::string& address);
    void sweep();

    Alarm sweepTimer_;
    std::optional<SentinelWatch> sentinels_; ///< none: the server has one address
};

} // namespace redislock::detail
