#include "redislock/lock_monitor.hpp"

#include "client/lock/throwing.hpp"
#include "link/connect/own_descriptors.hpp"
#include "redislock/clock.hpp"
#include "values/server_text.hpp"
#include "watch/inspector.hpp"
#include "wire/codec.hpp"

#include <unordered_map>
#include <utility>

namespace redislock {

struct LockMonitor::Impl {
    /// A hold that was seen.
    struct Seen {
        TimePoint first;
        std::uint64_t check = 0; ///< the last check that saw it
    };

    explicit Impl(const Config& config) : inspector(config) {}

    /// Runs a question, in the form that reports codes.
    template <class Question>
    auto answer(std::error_code& ec, Question question) -> decltype(question())
    {
        ec.clear();
        try {
            return question();
        } catch (const detail::InspectionFailed& failed) {
            ec = failed.reason;
            words = failed.words;
        }
        return {};
    }

    /// Calls the form that reports codes, and throws what it reports.
    template <class Function>
    auto throwing(const std::string& call, Function function) const
    {
        return detail::throwing(function, [&](const std::error_code& ec) {
            auto failed = detail::failedCallAt(inspector.lastErrors(), call, ec);
            failed.words = words.empty() ? failed.words : words;
            return failed;
        });
    }

    void raise(const LockReport& lock, const MonitorAlarms& alarms, TimePoint now);

    detail::Inspector inspector;
    std::string words;                          ///< of the last failure
    std::unordered_map<std::string, Seen> seen; ///< by lock and holder
    std::uint64_t checks = 0;
};

namespace {

constexpr std::size_t maxNameSize = 1024;

void requireName(std::string_view name)
{
    if (name.empty() || name.size() > maxNameSize) {
        throw detail::InspectionFailed{Errc::invalidArgument};
    }
}

Config validated(const Config& config)
{
    config.validate();
    detail::requireOwnHiredis();
    return config;
}

} // namespace

LockMonitor::LockMonitor(std::string_view url) : LockMonitor(Config::fromUrl(url)) {}

LockMonitor::LockMonitor(const Config& config)
    : impl_(detail::makeWithDescriptors("a monitor of " + detail::serverText(config), [&] {
          return std::shared_ptr<Impl>(new Impl(validated(config)), [](Impl* impl) {
              const detail::Uncancelled held;
              delete impl;
          });
      }))
{
}

MonitorProgress LockMonitor::forEachPage(std::string_view pattern, const Page& page)
{
    return impl_->throwing(detail::callOn(pattern, "list locks"),
                           [&](std::error_code& ec) { return forEachPage(pattern, page, ec); });
}

MonitorProgress LockMonitor::forEachPage(std::string_view pattern, const Page& page, std::error_code& ec)
{
    return impl_->answer(ec, [&] { return impl_->inspector.round(pattern, page); });
}

std::vector<LockReport> LockMonitor::list(std::string_view pattern)
{
    return impl_->throwing(detail::callOn(pattern, "list locks"),
                           [&](std::error_code& ec) { return list(pattern, ec); });
}

std::vector<LockReport> LockMonitor::list(std::string_view pattern, std::error_code& ec)
{
    std::vector<LockReport> all;
    forEachPage(
        pattern,
        [&all](const std::vector<LockReport>& page, const MonitorProgress&) {
            all.insert(all.end(), page.begin(), page.end());
            return true;
        },
        ec);
    return all;
}

std::optional<LockReport> LockMonitor::find(std::string_view name)
{
    return impl_->throwing(detail::callOn(name, "find lock"), [&](std::error_code& ec) { return find(name, ec); });
}

std::optional<LockReport> LockMonitor::find(std::string_view name, std::error_code& ec)
{
    return impl_->answer(ec, [&] {
        requireName(name);
        return impl_->inspector.find(name);
    });
}

void LockMonitor::Impl::raise(const LockReport& lock, const MonitorAlarms& alarms, TimePoint now)
{
    if (!lock.timeLeft && alarms.withoutTimeToLive) {
        alarms.withoutTimeToLive(lock);
    }
    const bool isNear = lock.timeLeft && *lock.timeLeft <= alarms.deadlineWithin;
    for (const auto& holder : lock.holders) {
        if (isNear && holder.clientId == alarms.clientId && alarms.nearDeadline) {
            alarms.nearDeadline(lock, holder);
        }
        Seen& hold = seen.try_emplace(lock.name + '\0' + holder.name, Seen{now, 0}).first->second;
        hold.check = checks;
        const auto time = std::chrono::floor<std::chrono::milliseconds>(now - hold.first);
        if (time > alarms.heldFor && alarms.heldTooLong) {
            alarms.heldTooLong(lock, holder, time);
        }
    }
}

MonitorProgress LockMonitor::check(std::string_view pattern, const MonitorAlarms& alarms, const Page& page)
{
    return impl_->throwing(detail::callOn(pattern, "check locks"),
                           [&](std::error_code& ec) { return check(pattern, alarms, page, ec); });
}

MonitorProgress LockMonitor::check(std::string_view pattern, const MonitorAlarms& alarms, const Page& page,
                                   std::error_code& ec)
{
    ++impl_->checks;
    bool isWhole = true;
    const auto progress = forEachPage(
        pattern,
        [&](const std::vector<LockReport>& locks, const MonitorProgress& so) {
            const auto now = BootClock::now();
            for (const auto& lock : locks) {
                impl_->raise(lock, alarms, now);
            }
            isWhole = !page || page(locks, so);
            return isWhole;
        },
        ec);
    if (isWhole && !ec) {
        std::erase_if(impl_->seen, [&](const auto& each) { return each.second.check != impl_->checks; });
    }
    return progress;
}

ServerReport LockMonitor::server(std::string_view name)
{
    return impl_->throwing("ask the server", [&](std::error_code& ec) { return server(name, ec); });
}

ServerReport LockMonitor::server(std::string_view name, std::error_code& ec)
{
    return impl_->answer(ec, [&] {
        requireName(name);
        return impl_->inspector.server(name);
    });
}

const std::vector<std::string>& LockMonitor::missingRights() const noexcept
{
    return impl_->inspector.missingRights();
}

} // namespace redislock
