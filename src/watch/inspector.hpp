/// @file
/// Questions about the locks of a server.
#pragma once

#include "core/lock_fields.hpp"
#include "link/cluster/cluster_table.hpp"
#include "link/connect/last_errors.hpp"
#include "redislock/lock_monitor.hpp"
#include "values/connection_name.hpp"
#include "watch/request_connection.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace redislock::detail {

/// Thrown inside the monitor: why there is no answer.
struct InspectionFailed {
    Reason reason;
    std::string words{}; ///< more about it; empty: what the server last said
};

/// Asks Redis, and puts the answers together. Its functions block, and throw InspectionFailed.
///
/// **Thread safety**: none.
class Inspector {
public:
    explicit Inspector(const Config& config);

    MonitorProgress round(std::string_view pattern, const LockMonitor::Page& page);
    std::optional<LockReport> find(std::string_view name);
    ServerReport server(std::string_view name);

    [[nodiscard]] const std::vector<std::string>& missingRights() const noexcept { return missing_; }
    [[nodiscard]] const LastErrors& lastErrors() const noexcept { return lastErrors_; }

private:
    struct Whereabouts {
        ConnectionIdentity identity;
        std::string address;
        std::chrono::seconds age{};  ///< of the oldest connection
        std::chrono::seconds idle{}; ///< since the last one sent something
    };

    /// Another node of the cluster has the key.
    struct Redirected {
        Endpoint at;
        bool isOnce = false;
    };

    // of a cluster: which node is asked from now on
    void goTo(const Endpoint& at);
    void goToOwnerOf(std::string_view name);
    /// Asks for the table. @return where the masters are; without a cluster, where the server is
    std::vector<Endpoint> masters();
    bool readTable();
    /// Asks @p question about a name, of the node that has it, also while it moves.
    template <class Question>
    auto atOwnerOf(std::string_view name, Question question);
    ClusterReport describeCluster(std::string_view version);

    std::vector<Reply> ask(const Pipeline& requests);
    Reply askOne(const std::vector<std::string>& words);
    /// @return whether the reply is an answer; false if a right is missing, which is noted.
    bool isGiven(const Reply& reply, const std::string& right, std::string_view key = {});
    void noteMissing(const std::string& right);

    void readClients();
    void readClientsHere();
    bool roundHere(std::string_view pattern, const LockMonitor::Page& page, MonitorProgress& progress,
                   std::unordered_set<std::string>& seen);
    std::optional<LockReport> findHere(std::string_view name);
    void locate(std::vector<LockHolder>& holders) const;
    std::uint64_t countKeys();
    std::vector<std::string> nextKeys(std::string_view pattern, std::string& cursor);
    /// @param progress counts the keys that are not among the reports.
    std::vector<LockReport> inspect(const std::vector<std::string>& names, MonitorProgress& progress);
    std::vector<LockReport> inspectEach(const std::vector<std::string>& names, MonitorProgress& progress);
    Reason whyHidden(const LockFields& fields) const;
    void refuse(const std::string& name, bool isReadable);
    void lookAround(std::vector<LockReport>& locks);
    void readOtherHolders(LockReport& lock);
    void readQueue(LockReport& lock);
    std::optional<std::vector<std::string>> lackingRights(std::string_view name);
    std::optional<std::string> setting(const std::string& name);

    LastErrors lastErrors_;
    const Config config_;
    const std::string connectionName_;
    std::map<std::string, std::unique_ptr<RequestConnection>> connections_; ///< by address
    RequestConnection* connection_ = nullptr;                               ///< the one that is asked
    Endpoint at_;                                                           ///< where it leads
    bool asks_ = false;                                                     ///< in front of each request goes ASKING
    ClusterTable table_;                                                    ///< of a cluster, as it was last told
    std::unordered_map<std::string, Whereabouts> clients_;                  ///< by client id, as CLIENT LIST last said
    std::vector<std::string> missing_;
    bool filtersTypes_ = true; ///< the server knows SCAN … TYPE
};

} // namespace redislock::detail
