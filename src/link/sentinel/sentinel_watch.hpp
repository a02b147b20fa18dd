/// @file
/// Asking Sentinels, and listening to them.
#pragma once

#include "link/connect/alarm.hpp"
#include "link/connect/connector.hpp"
#include "link/connect/last_errors.hpp"
#include "link/connect/locator.hpp"
#include "link/request/channels.hpp"
#include "link/sentinel/sentinel_route.hpp"
#include "redislock/clock.hpp"
#include "redislock/config.hpp"

#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

/// Drives a SentinelRoute for one client: two connections to each Sentinel, one for questions, one for what it
/// publishes. Begins with the first call of locate().
///
/// **Thread safety**: none; everything on the io_context's thread.
class SentinelWatch final : public Locator {
public:
    /// @param servers asks servers what they are. @param moved called when the master is another one than before
    SentinelWatch(boost::asio::io_context& io, const Config& config, std::string connectionName, LastErrors& lastErrors,
                  std::function<void(std::string what)> warn, Connector& servers, std::function<void()> moved);
    ~SentinelWatch() override;

    void locate(Found found) override;
    void tried(const Endpoint& at, const std::optional<Fault>& fault) override;
    [[nodiscard]] Fault absence() const override;

    /// How many Sentinels there are, as far as is known.
    [[nodiscard]] std::size_t seen() const noexcept { return route_.listed(); }
    /// How many of them must agree that the master is gone; 0: not told.
    [[nodiscard]] std::uint64_t quorum() const noexcept { return quorum_; }

    /// Forgets what is known, for a client whose thread did not run meanwhile.
    void forget();
    /// After an exception on the thread, which may have interrupted anything.
    void recover();
    void close();

private:
    class Peer;
    struct Question;

    void workSoon() noexcept;
    void work();
    void drop(std::shared_ptr<Peer> peer);
    void ask(std::size_t which);
    void answered(const Question& question);
    void heard(std::size_t which, Notice notice, std::string_view text);
    void probe(const Endpoint& at);
    void tellWaiting(const Endpoint* at, const Fault& why);
    [[nodiscard]] std::optional<Endpoint> mapped(std::string_view host, std::string_view port);

    boost::asio::io_context& io_;
    const Sentinels sentinels_;
    const AddressMap map_;
    const Config peerConfig_; ///< of the connections to a Sentinel, but for its address
    const std::string connectionName_;
    LastErrors& lastErrors_;
    LastErrors ownErrors_;
    const std::function<void(std::string what)> warn_;
    Connector& servers_;
    const std::function<void()> moved_;
    std::shared_ptr<SentinelWatch> self_; ///< for listeners and questions, which may outlast this; owns nothing
    SentinelRoute route_;
    std::optional<Endpoint> used_;             ///< the master that was told last
    std::vector<std::shared_ptr<Peer>> peers_; ///< by number; null: not connected to
    std::vector<Found> waiting_;
    Alarm timer_;
    std::uint64_t quorum_ = 0;
    bool hasBegun_ = false;
    bool isClosed_ = false;
    bool isNotMapped_ = false; ///< the address map threw for a master
};

} // namespace redislock::detail
