#include "link/sentinel/sentinel_watch.hpp"

#include "link/call_link.hpp"
#include "link/connect/causes.hpp"
#include "link/request/calls.hpp"
#include "link/subscriber.hpp"
#include "values/server_text.hpp"
#include "values/system/process.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <new>
#include <string_view>
#include <utility>

namespace redislock::detail {

namespace {

constexpr std::chrono::milliseconds sentinelHeartbeat{2000};
constexpr const char* switchChannel = "+switch-master";

Config configOfPeers(const Config& config)
{
    Config own = config;
    own.username = config.sentinels->username;
    own.password = config.sentinels->password;
    own.tls = config.sentinels->tls;
    own.credentials = nullptr;
    own.sentinels.reset();
    own.database = 0;
    return own;
}

/// Decimal digits and nothing else; 0 for anything else.
std::uint64_t numberIn(std::string_view text) noexcept
{
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

} // namespace

/// The requests of one question, and their answers.
struct SentinelWatch::Question final : Requester {
    Question(const std::shared_ptr<SentinelWatch>& watch, std::size_t number, const std::string& name)
        : of(watch),
          which(number),
          calls{std::make_shared<CommandCall>(std::vector<std::string>{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name}),
                std::make_shared<CommandCall>(std::vector<std::string>{"SENTINEL", "MASTER", name}),
                std::make_shared<CommandCall>(std::vector<std::string>{"SENTINEL", "SENTINELS", name})}
    {
    }

    void answered(Call& /*call*/) noexcept override
    {
        if (--due > 0) {
            return;
        }
        if (const auto watch = of.lock()) {
            try {
                watch->answered(*this);
            } catch (...) { // out of memory
                watch->route_.dropped(which);
            }
        }
    }

    [[nodiscard]] const Call& address() const noexcept { return *calls[0]; }
    [[nodiscard]] const Call& master() const noexcept { return *calls[1]; }
    [[nodiscard]] const Call& others() const noexcept { return *calls[2]; }

    const std::weak_ptr<SentinelWatch> of;
    const std::size_t which;
    const std::array<std::shared_ptr<CommandCall>, 3> calls;
    std::size_t due = 3;
};

/// One Sentinel.
class SentinelWatch::Peer {
public:
    Peer(SentinelWatch& of, std::size_t which)
        : connector_(of.io_, configAt(of.peerConfig_, of.route_.at(which)), of.connectionName_, of.ownErrors_, of.warn_,
                     ServerKind::sentinel),
          questions(of.io_, connector_, of.peerConfig_.commandTimeout, freshSeed(), [](bool, Reason) {}),
          events_(of.io_, connector_, of.peerConfig_.commandTimeout, sentinelHeartbeat, freshSeed(),
                  [](bool, Reason) {}),
          listener_{of.self_, which, [](void* whose, std::uint64_t part, Notice notice, std::string_view text) {
                        auto& watch = *static_cast<SentinelWatch*>(whose);
                        watch.heard(static_cast<std::size_t>(part), notice, text);
                    }}
    {
        events_.want(switchChannel, listener_);
    }

    void recover()
    {
        connector_.recover();
        questions.recover();
        events_.recover();
    }
    void close()
    {
        connector_.close();
        questions.close();
        events_.close();
    }

private:
    static Config configAt(Config config, const Endpoint& at)
    {
        config.endpoint = at;
        return config;
    }

    Connector connector_;

public:
    CallLink questions;
    std::optional<Fault> fault; ///< of the last question

private:
    Subscriber events_;
    ChannelListener listener_;
};

SentinelWatch::SentinelWatch(boost::asio::io_context& io, const Config& config, std::string connectionName,
                             LastErrors& lastErrors, std::function<void(std::string what)> warn, Connector& servers,
                             std::function<void()> moved)
    : io_(io),
      sentinels_(*config.sentinels),
      map_(config.addressMap),
      peerConfig_(configOfPeers(config)),
      connectionName_(std::move(connectionName)),
      lastErrors_(lastErrors),
      ownErrors_(serverText(config), config.sentinels->password),
      warn_(std::move(warn)),
      servers_(servers),
      moved_(std::move(moved)),
      self_(this, [](SentinelWatch*) {}),
      timer_(io)
{
    lastErrors_.hide(sentinels_.password);
    for (const auto& endpoint : sentinels_.endpoints) {
        route_.add(endpoint, true);
    }
    timer_.onRing([this] {
        route_.timeIsOver(BootClock::now());
        work();
    });
}

SentinelWatch::~SentinelWatch() = default;

void SentinelWatch::forget()
{
    if (!isClosed_) {
        for (auto& each : std::exchange(peers_, {})) {
            drop(std::move(each));
        }
        route_ = SentinelRoute();
        for (const auto& endpoint : sentinels_.endpoints) {
            route_.add(endpoint, true);
        }
        used_.reset();
    }
}

void SentinelWatch::locate(Found found)
{
    if (const Endpoint* const master = route_.master()) {
        return found(master, {});
    }
    waiting_.push_back(std::move(found));
    hasBegun_ = true;
    route_.search();
    workSoon();
}

void SentinelWatch::tried(const Endpoint& at, const std::optional<Fault>& fault)
{
    route_.tried(at, !fault, BootClock::now());
    workSoon();
}

Fault SentinelWatch::absence() const
{
    if (isNotMapped_) {
        return {Failure::fatal, Cause::addressNotMapped};
    }
    if (route_.isAnswered()) {
        return route_.isNamed() ? Fault{Failure::notConnected, Cause::noMaster}
                                : Fault{Failure::fatal, Cause::unknownMaster};
    }
    Fault worst{Failure::notConnected, Cause::noSentinel};
    for (const auto& each : peers_) {
        if (each && each->fault &&
            (worst.error == Reason(Cause::noSentinel) || each->fault->failure == Failure::fatal)) {
            worst = *each->fault;
        }
    }
    if (worst.failure != Failure::fatal) {
        const auto words = ownErrors_.about(worst.error).text;
        worst.error = Cause::noSentinel;
        lastErrors_.note(worst.error, words);
        return worst;
    }
    lastErrors_.note(worst.error, ownErrors_.about(worst.error).text);
    return worst;
}

/// Not in here: what calls may belong to what would be destroyed.
void SentinelWatch::workSoon() noexcept
{
    if (hasBegun_ && !isClosed_) {
        timer_.set(BootClock::now());
    }
}

void SentinelWatch::work()
{
    if (!hasBegun_ || isClosed_) {
        return;
    }
    const TimePoint now = BootClock::now();
    peers_.resize(route_.count());
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        if (peers_[i] && !route_.isListed(i)) {
            drop(std::exchange(peers_[i], nullptr));
        }
    }
    while (const auto which = route_.takeQuestion(now)) {
        ask(*which);
    }
    while (const auto at = route_.takeProbe(now)) {
        probe(*at);
    }
    if (const Endpoint* const master = route_.master(); master != nullptr && used_ != *master) {
        const bool isFirst = !used_;
        used_ = *master;
        tellWaiting(&*used_, {});
        isFirst ? void() : moved_();
    } else if (!waiting_.empty() && route_.isHopeless()) {
        tellWaiting(nullptr, absence());
    }
    timer_.set(route_.dueAt());
}

/// Ends the connections to a Sentinel. What was posted for them comes first.
void SentinelWatch::drop(std::shared_ptr<Peer> peer)
{
    if (peer) {
        peer->close();
        boost::asio::post(io_, [peer = std::move(peer)] {});
    }
}

void SentinelWatch::tellWaiting(const Endpoint* at, const Fault& why)
{
    for (const auto& found : std::exchange(waiting_, {})) {
        found(at, why);
    }
}

void SentinelWatch::ask(std::size_t which)
{
    try {
        if (!peers_[which]) {
            peers_[which] = std::make_shared<Peer>(*this, which);
        }
        const auto question = std::make_shared<Question>(self_, which, sentinels_.name);
        for (const auto& call : question->calls) {
            call->mode = Call::Mode::detached;
            call->requester = question;
            peers_[which]->questions.enqueue(call);
        }
        peers_[which]->questions.work();
    } catch (...) { // out of memory, or of what the system needs for a connection
        route_.silent(which, BootClock::now());
        throw;
    }
}

void SentinelWatch::answered(const Question& question)
{
    const auto which = question.which;
    if (isClosed_ || which >= peers_.size() || !peers_[which]) {
        return;
    }
    auto& fault = peers_[which]->fault;
    const TimePoint now = BootClock::now();
    const Call& address = question.address();
    fault = !address.outcome.replied  ? std::optional(address.outcome.fault)
            : address.reply.isError() ? std::optional(classify(address.reply.text))
                                      : std::nullopt;
    if (fault) {
        route_.silent(which, now);
        return workSoon();
    }
    SentinelRoute::Word word;
    isNotMapped_ = false;
    if (const auto& parts = address.reply.elements; parts.size() == 2) {
        word.master = mapped(parts[0].text, parts[1].text);
        isNotMapped_ = !word.master;
    }
    if (const Call& master = question.master(); master.outcome.replied && !master.reply.isError()) {
        word.epoch = numberIn(valueIn(master.reply, "config-epoch"));
        quorum_ = numberIn(valueIn(master.reply, "quorum"));
    }
    if (const Call& others = question.others(); others.outcome.replied) {
        for (const auto& each : others.reply.elements) {
            if (const auto at = mapped(valueIn(each, "ip"), valueIn(each, "port"))) {
                word.others.push_back(*at);
            }
        }
    }
    word.itself = tcpEndpoint(peers_[which]->questions.peer());
    route_.told(which, word, now);
    workSoon();
}

/// `<name> <old host> <old port> <new host> <new port>`
void SentinelWatch::heard(std::size_t which, Notice notice, std::string_view text)
{
    if (notice == Notice::confirmed) {
        route_.missed(which);
    } else if (notice == Notice::message) {
        std::array<std::string_view, 5> words;
        for (auto& word : words) {
            word = text.substr(0, text.find(' '));
            text.remove_prefix(std::min(text.size(), word.size() + 1));
        }
        const auto master = words[0] == sentinels_.name ? mapped(words[3], words[4]) : std::nullopt;
        if (master) {
            route_.switched(which, *master, BootClock::now());
        }
    }
    workSoon();
}

void SentinelWatch::probe(const Endpoint& at)
{
    const std::weak_ptr<SentinelWatch> weak = self_;
    try {
        servers_.probe(at, [weak, at](const std::optional<Fault>& fault) {
            if (const auto watch = weak.lock()) {
                watch->route_.probed(at, !fault, BootClock::now());
                watch->workSoon();
            }
        });
    } catch (...) { // out of memory
        route_.probed(at, false, BootClock::now());
        throw;
    }
}

/// The address to connect to in the place of one that was announced; nothing: it is none.
std::optional<Endpoint> SentinelWatch::mapped(std::string_view host, std::string_view port)
{
    Endpoint at;
    at.host = host;
    const auto number = numberIn(port);
    at.port = static_cast<std::uint16_t>(number);
    if (host.empty() || number == 0 || number != at.port) {
        return std::nullopt;
    }
    return detail::mapped(map_, at, lastErrors_);
}

void SentinelWatch::recover()
{
    for (const auto& each : peers_) {
        each ? each->recover() : void();
    }
    timer_.wait();
    workSoon();
}

void SentinelWatch::close()
{
    isClosed_ = true;
    timer_.close();
    waiting_.clear();
    for (const auto& each : peers_) {
        each ? each->close() : void();
    }
}

} // namespace redislock::detail
