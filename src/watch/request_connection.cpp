#include "watch/request_connection.hpp"

#include "values/system/process.hpp"

#include <boost/asio/steady_timer.hpp>

namespace redislock::detail {

namespace {

/// For pages of keys, lists of clients, and hashes of other programs: larger than what a client asks about its own
/// locks.
constexpr ReplyLimits inspectionLimits{64UL * 1024, 64UL * 1024 * 1024};

} // namespace

RequestConnection::RequestConnection(const Config& config, const std::string& name, LastErrors& lastErrors)
    : connector_(
          io_, config, name, lastErrors, [](const std::string&) {},
          config.cluster.empty() ? ServerKind::master : ServerKind::node),
      link_({.connect = [this](TimePoint /*notBefore*/) { connects_.request_stop(); },
             .hurry = [](TimePoint) {},
             .demoted = [](const std::string&) {},
             .sweepSoon = [] {},
             .refused = [&lastErrors](const Reply& reply, const Call* of) { lastErrors.noteReply(reply, of); },
             .report = [](bool, Reason) {}},
            config.commandTimeout, freshSeed(), inspectionLimits)
{
    if (config.sentinels) {
        sentinels_.emplace(
            io_, config, name, lastErrors, [](const std::string&) {}, connector_, [] {});
        connector_.locateBy(*sentinels_);
    }
    const boost::asio::steady_timer opens(io_); // the descriptors of the io_context now, not with its first use
}

std::optional<Fault> RequestConnection::ask(const Pipeline& requests, std::vector<Reply>& replies)
{
    const Uncancelled held;
    replies.clear();
    replies.reserve(requests.calls().size());
    for (const auto& call : requests.calls()) {
        (void)link_.enqueue(call);
    }
    std::optional<Fault> failed;
    for (const auto& call : requests.calls()) {
        if (failed) {
            (void)link_.giveUp(*call);
        } else if (const auto outcome = await(*call); outcome.replied) {
            replies.push_back(std::move(call->reply));
        } else {
            failed = outcome.fault;
        }
    }
    return failed;
}

/// Waits for a call, and makes a connection each time that there is none.
Outcome RequestConnection::await(Call& call)
{
    for (;;) {
        if (connects_.stop_requested()) {
            connect();
        }
        const auto outcome = link_.await(call, TimePoint::max(), ThreadLink::First::lead, connects_.get_token());
        if (!outcome.calledOff) {
            return outcome;
        }
    }
}

void RequestConnection::connect()
{
    connects_ = std::stop_source();
    if (sentinels_) {
        sentinels_->forget();
    }
    auto ended = std::make_shared<bool>(false); // kept by an attempt that an exception leaves over
    connector_.connect(this, BootClock::now(), std::chrono::milliseconds::max(), [this, ended](Connected result) {
        *ended = true;
        result.fault ? link_.connectFailed(*result.fault) : (void)link_.connected(std::move(result.stream));
    });
    io_.restart();
    while (!*ended && io_.run_one() > 0) {
    }
}

} // namespace redislock::detail
