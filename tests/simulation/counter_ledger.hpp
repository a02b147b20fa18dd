/// @file
/// The effects that requests about counters must have had, by their ids.
#pragma once

#include "simulation/keyspace.hpp"
#include "simulation/request.hpp"
#include "simulation/scheduler.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace redislock::simulation {

/// The process that sent the request whose answer is under this key, or that has the permit with this id.
[[nodiscard]] std::string processOfRecord(const std::string& record);
[[nodiscard]] std::string processOfPermit(const std::string& id);
/// The id of the n-th permit that a process asks for, 16 bytes.
[[nodiscard]] std::string permitId(const std::string& process, std::uint64_t number);
/// An id in readable form.
[[nodiscard]] std::string hexOf(const std::string& id);

/// The answers to requests. Each request counts once, however often and late it is executed.
class Answers {
public:
    [[nodiscard]] std::optional<std::int64_t> find(const std::string& record) const
    {
        const auto found = answers_.find(record);
        return found == answers_.end() ? std::nullopt : std::optional(found->second);
    }
    void keep(const std::string& record, std::int64_t answer) { answers_[record] = answer; }

private:
    std::map<std::string, std::int64_t> answers_;
};

/// A decimal number; nothing if the text is not one.
[[nodiscard]] std::optional<std::int64_t> numberIn(const std::string& text) noexcept;
/// The number in a key of the server; zero if there is no key.
[[nodiscard]] std::int64_t numberAt(const Keyspace& keyspace, const std::string& name, VirtualTime now) noexcept;

/// The key under which the answer to a request is kept.
[[nodiscard]] inline const std::string& recordOf(const Request& request)
{
    return request.otherKeys.at(0);
}

} // namespace redislock::simulation
