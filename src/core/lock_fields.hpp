/// @file
/// Turns what Redis keeps of a lock into a report.
#pragma once

#include "redislock/lock_report.hpp"
#include "values/connection_name.hpp"
#include "wire/key_schema.hpp"
#include "wire/reply.hpp"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace redislock::detail {

/// A hold count as it is written: a whole number of at least 1, which may be greater than ours ever are.
inline std::optional<std::uint32_t> holdCountOf(std::string_view text) noexcept
{
    std::uint32_t count = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (end != text.data() + text.size()) {
        return std::nullopt;
    }
    count = failure == std::errc::result_out_of_range ? std::numeric_limits<std::uint32_t>::max() : count;
    return count > 0 ? std::optional(count) : std::nullopt;
}

/// A holder by its name in Redis: `<client id>:<number>`, and for a hold to write `:write`. Redisson's number is any
/// 64-bit one that its user chose, and the name may end with `:` and the id of a transaction. Nothing for another text.
inline std::optional<LockHolder> holderNamed(std::string_view name)
{
    constexpr std::size_t idSize = 36;
    constexpr std::string_view writing = ":write";
    if (name.size() <= idSize + 1 || name[idSize] != ':' || !isClientId(name.substr(0, idSize))) {
        return std::nullopt;
    }
    std::int64_t number = 0;
    const char* const last = name.data() + name.size();
    const auto [end, failure] = std::from_chars(name.data() + idSize + 1, last, number);
    std::string_view rest(end, static_cast<std::size_t>(last - end));
    if (failure != std::errc() || (!rest.empty() && rest[0] != ':')) {
        return std::nullopt;
    }
    LockHolder holder;
    holder.name = name.substr(0, name.size() - rest.size());
    holder.clientId = name.substr(0, idSize);
    holder.writes = rest == writing || rest.starts_with(":write:");
    rest.remove_prefix(holder.writes ? writing.size() : 0);
    holder.name += rest;
    return holder;
}

/// The answers about a key that may be a lock.
struct LockFields {
    Reply mode;       ///< HGET name mode
    Reply page;       ///< HSCAN name 0: the cursor, and fields with their values
    Reply timeToLive; ///< PTTL name
};

/// Makes it a read or a write lock. @return false for another mode.
inline bool readMode(LockReport& report, const Reply& mode) noexcept
{
    report.kind = mode.text == "read" ? ObjectKind::readLock : ObjectKind::writeLock;
    return mode.text == "read" || mode.text == "write";
}

/// Adds the fields of a page of HSCAN as holders. @return false when a field is not a holder's: the hash is no lock.
inline bool appendHolders(LockReport& report, const Reply& page)
{
    if (page.elements.size() != 2) {
        return false;
    }
    const auto& words = page.elements[1].elements;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
        if (words[i].text == "mode") { // may be newer than what HGET said of it
            if (!readMode(report, words[i + 1])) {
                return false;
            }
            continue;
        }
        auto holder = holderNamed(words[i].text);
        const auto count = holdCountOf(words[i + 1].text);
        if (!holder || !count) {
            return false;
        }
        holder->count = *count;
        report.holders.push_back(*std::move(holder));
    }
    report.hasMoreHolders = page.elements[0].text != "0";
    return true;
}

/// How long a key lasts. @return false when the key is gone.
inline bool readTimeLeft(LockReport& report, const Reply& timeToLive)
{
    if (timeToLive.kind != Reply::Kind::integer || timeToLive.integer == -2) {
        return false;
    }
    if (timeToLive.integer >= 0) {
        report.timeLeft = std::chrono::milliseconds(timeToLive.integer);
    }
    return true;
}

/// The lock of the answers, with so many fields that they were not asked for: only readers are so many.
inline std::optional<LockReport> reportOfCrowd(std::string name, const LockFields& fields)
{
    LockReport report;
    report.name = std::move(name);
    report.kind = ObjectKind::readLock;
    report.hasMoreHolders = true;
    const bool isRead = fields.mode.kind == Reply::Kind::text && fields.mode.text == "read";
    return isRead && readTimeLeft(report, fields.timeToLive) ? std::optional(std::move(report)) : std::nullopt;
}

/// Whether there was no key at the moment of one of the answers.
inline bool isGone(const LockFields& fields) noexcept
{
    const bool isPage = fields.page.elements.size() == 2;
    return (fields.timeToLive.kind == Reply::Kind::integer && fields.timeToLive.integer == -2) ||
           (isPage && fields.page.elements[0].text == "0" && fields.page.elements[1].elements.empty());
}

/// The lock of the answers. Nothing for a key that is no lock, or is gone: a hash that is not clearly a lock is none.
inline std::optional<LockReport> reportOf(std::string name, const LockFields& fields)
{
    LockReport report;
    report.name = std::move(name);
    const bool isMode = fields.mode.kind != Reply::Kind::text || readMode(report, fields.mode);
    if (fields.mode.isError() || !isMode || !readTimeLeft(report, fields.timeToLive) ||
        !appendHolders(report, fields.page) || report.holders.empty()) {
        return std::nullopt;
    }
    if (report.kind == ObjectKind::redisLock &&
        (report.holders.size() > 1 || report.hasMoreHolders || report.holders.front().writes)) {
        return std::nullopt;
    }
    return report;
}

/// The other answers about a lock.
struct LockSurroundings {
    std::optional<bool> hasToken;           ///< EXISTS of the token
    std::optional<std::uint64_t> queued;    ///< LLEN of the queue
    std::optional<std::uint64_t> listeners; ///< PUBSUB NUMSUB of the channel
};

/// A number in an answer; nothing for an error, or anything else.
inline std::optional<std::uint64_t> numberIn(const Reply& reply) noexcept
{
    const bool isNumber = reply.kind == Reply::Kind::integer && reply.integer >= 0;
    return isNumber ? std::optional(static_cast<std::uint64_t>(reply.integer)) : std::nullopt;
}

/// Adds the kind of the lock, and who waits, to a report.
inline void addSurroundings(LockReport& report, const LockSurroundings& around) noexcept
{
    report.waiters = around.listeners;
    if (report.kind != ObjectKind::redisLock) {
        return;
    }
    if (around.queued.value_or(0) > 0) {
        report.kind = ObjectKind::fairLock;
        report.waiters = around.queued;
    } else if (around.hasToken.value_or(false)) {
        report.kind = ObjectKind::fencedLock;
    }
}

/// The channel on which all who wait for a lock hear of its end.
inline std::string channelOf(const LockReport& report)
{
    const bool isReadWrite = report.kind == ObjectKind::readLock || report.kind == ObjectKind::writeLock;
    return prefixed(isReadWrite ? readWriteChannelPrefix : lockChannelPrefix, report.name);
}

/// Adds where a holder is.
inline void place(LockHolder& holder, const ConnectionIdentity& identity, std::string_view address)
{
    holder.program = identity.label;
    holder.host = identity.host;
    holder.process = identity.process;
    holder.address = address;
}

} // namespace redislock::detail
