/// @file
/// Questions about the locks of a server.
#pragma once

#include "core/lock_fields.hpp"
#include "link/connect/last_errors.hpp"
#include "redislock/lock_monitor.hpp"
#include "values/connection_name.hpp"
#include "watch/request_connection.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
    };

    std::vector<Reply> ask(const Pipeline& requests);
    Reply askOne(const std::vector<std::string>& words);
    /// @return whether the reply is an answer; false if a right is missing, which is noted.
    bool isGiven(const Reply& reply, const std::string& right, std::string_view key = {});
    void noteMissing(const std::string& right);

    void readClients();
    void locate(std::vector<LockHolder>& holders) const;
    std::uint64_t countKeys();
    std::vector<std::string> nextKeys(std::string_view pattern, std::string& cursor);
    /// @param progress counts the keys that are not among the reports.
    std::vector<LockReport> inspect(const std::vector<std::string>& names, MonitorProgress& progress);
    Reason whyHidden(const LockFields& fields) const;
    void refuse(const std::string& name, bool isReadable);
    void lookAround(std::vector<LockReport>& locks);
    void readOtherHolders(LockReport& lock);
    void readQueue(LockReport& lock);
    std::optional<std::vector<std::string>> lackingRights(std::string_view name);
    std::optional<std::string> setting(const std::string& name);

    LastErrors lastErrors_;
    RequestConnection connection_;
    std::unordered_map<std::string, Whereabouts> clients_; ///< by client id, as CLIENT LIST last said
    std::vector<std::string> missing_;
    bool filtersTypes_ = true; ///< the server knows SCAN … TYPE
};

} // namespace redislock::detail
