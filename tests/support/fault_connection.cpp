#include "support/fault_connection.hpp"

#include "support/eventually.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace redislock::test::proxy {
namespace {

constexpr std::size_t mostHeldBytes = 4UL * 1024 * 1024;
constexpr std::size_t longestLog = 100'000;
constexpr std::size_t longestLoggedArgument = 8192;

void closeSocket(int& socket, FaultProxy::Close how) noexcept
{
    if (socket < 0) {
        return;
    }
    if (how == FaultProxy::Close::reset) {
        const linger atOnce{1, 0};
        ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &atOnce, sizeof(atOnce));
    } else {
        // Closing with unread bytes would send a reset.
        ::shutdown(socket, SHUT_WR);
        std::array<char, 4096> unread{};
        for (int i = 0; i < 1000 && ::recv(socket, unread.data(), unread.size(), MSG_DONTWAIT) > 0; ++i) {
        }
    }
    ::close(std::exchange(socket, -1));
}

pollfd toPoll(int socket, const Lane& in, const Lane& out, Clock::time_point now) noexcept
{
    const auto events = static_cast<short>((in.wantsBytes() ? POLLIN : 0) | (out.sendable(now) ? POLLOUT : 0));
    // poll() reports a hang-up even for a socket without events, so that a socket that is held back would make the
    // thread spin.
    return {events == 0 ? -1 : socket, events, 0};
}

/// "punsubscribe" is about the channels of "psubscribe".
std::string subscribeKind(std::string kind)
{
    if (const auto at = kind.find("un"); at != std::string::npos) {
        kind.erase(at, 2);
    }
    return kind;
}

std::string kindOf(const Words& request)
{
    return request.empty() ? std::string() : lower(request.front());
}

/// Applies the actions that are the same in all directions; the other actions pass the frame here.
void pushFrame(Lane& lane, std::string bytes, const Action& action, std::shared_ptr<const Words> request = {})
{
    Item item{.bytes = std::move(bytes), .request = std::move(request)};
    switch (action.kind()) {
    case Action::Kind::drop:
    case Action::Kind::swallow:
        lane.lost = true;
        return;
    case Action::Kind::duplicate:
        lane.push(item);
        break;
    case Action::Kind::delay:
        item.due = Clock::now() + action.time();
        break;
    case Action::Kind::split:
        item.pace = action.time();
        break;
    case Action::Kind::cut:
    case Action::Kind::truncate:
        item.bytes.resize(std::min(action.count(), item.bytes.size()));
        item.request.reset();
        item.then = Item::Then::closeBoth;
        break;
    case Action::Kind::cutAfterForward:
        item.then = Item::Then::closeBoth;
        break;
    case Action::Kind::replace:
        item.bytes = action.bytes();
        break;
    case Action::Kind::stallDirection:
        lane.stalled = true;
        break;
    case Action::Kind::pass:
        break;
    }
    lane.push(std::move(item));
}

} // namespace

void Shared::record(std::size_t connection, const Words& words)
{
    LoggedRequest request{connection, bootTime(), {}};
    for (const auto& word : words) {
        request.arguments.push_back(word.substr(0, longestLoggedArgument));
    }
    log.push_back(std::move(request));
    if (log.size() > longestLog) {
        log.pop_front();
    }
}

bool Lane::wantsBytes() const noexcept
{
    return !stalled && !ended && !cut && held < mostHeldBytes;
}

bool Lane::sendable(Clock::time_point now) const noexcept
{
    return !stalled && !outbox.empty() && std::max(outbox.front().due, nextByte) <= now;
}

void Lane::push(Item item)
{
    held += item.bytes.size();
    cut = cut || item.then != Item::Then::goOn;
    outbox.push_back(std::move(item));
}

void Subscriptions::confirm(const std::string& kind, const std::string& channel)
{
    auto& channels = channels_[subscribeKind(kind)];
    if (kind == subscribeKind(kind)) {
        channels.insert(channel);
    } else if (channels.erase(channel); channels.empty()) {
        channels_.erase(subscribeKind(kind));
    }
}

std::size_t Subscriptions::confirmationsOf(const std::string& kind) const
{
    const auto channels = channels_.find(subscribeKind(kind));
    return channels == channels_.end() ? 1 : channels->second.size();
}

bool Subscriptions::any() const
{
    return !channels_.empty();
}

bool Subscriptions::isConfirmation(const std::string& kind)
{
    const auto base = subscribeKind(kind);
    return base == "subscribe" || base == "psubscribe" || base == "ssubscribe";
}

bool Subscriptions::isMessage(const std::string& kind)
{
    return kind == "message" || kind == "pmessage" || kind == "smessage";
}

Connection::Connection(Shared& shared, std::size_t number, int client, int server)
    : shared_(shared), number_(number), client_(client), server_(server)
{
}

void Connection::close(FaultProxy::Close how) noexcept
{
    closeSocket(client_, how);
    closeSocket(server_, how);
}

pollfd Connection::clientPoll(Clock::time_point now) const noexcept
{
    return toPoll(client_, requests_, replies_, now);
}

pollfd Connection::serverPoll(Clock::time_point now) const noexcept
{
    return toPoll(server_, replies_, requests_, now);
}

Clock::time_point Connection::nextDue(Clock::time_point now) const noexcept
{
    auto next = Clock::time_point::max();
    for (const auto* lane : {&requests_, &replies_}) {
        // An item that is already due waits for its socket, not for a time.
        if (!lane->stalled && !lane->outbox.empty() && !lane->sendable(now)) {
            next = std::min(next, std::max(lane->outbox.front().due, lane->nextByte));
        }
    }
    return next;
}

void Connection::readClient()
{
    if (const auto bytes = read(client_, requests_)) {
        take(requests_, *bytes, [this](Frame frame) { takeRequest(std::move(frame)); });
    }
}

void Connection::readServer()
{
    if (const auto bytes = read(server_, replies_)) {
        take(replies_, *bytes,
             [this](Frame frame) { return isPush(frame) ? takePush(std::move(frame)) : takeReply(std::move(frame)); });
    }
}

std::optional<std::string> Connection::read(int socket, Lane& lane)
{
    if (socket < 0 || !lane.wantsBytes()) {
        return std::nullopt;
    }
    std::array<char, 16384> buffer{};
    const auto size = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size > 0) {
        return std::string(buffer.data(), static_cast<std::size_t>(size));
    }
    if (size == 0) {
        lane.ended = true;
    } else if (errno != EAGAIN && errno != EINTR && socket == client_) {
        ++shared_.resets;
        lane.ended = true;
        loseReplies();
    } else if (errno != EAGAIN && errno != EINTR) {
        close(FaultProxy::Close::reset);
    }
    return std::nullopt;
}

template <class TakeFrame>
void Connection::take(Lane& lane, const std::string& bytes, TakeFrame takeFrame)
{
    if (passesBytes_) {
        return takeBytes(lane, bytes);
    }
    lane.framer.feed(bytes);
    while (!lane.opaque && !lane.cut) {
        auto frame = lane.framer.next();
        if (!frame) {
            break;
        }
        takeFrame(*std::move(frame));
    }
    lane.opaque = lane.opaque || lane.framer.broken();
    if (lane.opaque && !lane.cut) {
        lane.push({.bytes = lane.framer.rest()});
    }
}

void Connection::takeBytes(Lane& lane, const std::string& bytes)
{
    const auto direction = &lane == &requests_ ? Direction::request : Direction::reply;
    for (std::size_t begin = 0; begin < bytes.size() && !lane.cut && !lane.lost;) {
        const auto size = shared_.rules.untilNext(direction, lane.taken, bytes.size() - begin);
        pushFrame(lane, bytes.substr(begin, size), shared_.rules.apply(direction, {}, lane.taken));
        lane.taken += size;
        begin += size;
    }
}

void Connection::takeRequest(Frame frame)
{
    if (requests_.lost) {
        return;
    }
    const auto words = std::make_shared<const Words>(std::move(frame.words));
    if (words->empty()) { // an empty line or array, which Redis ignores
        return passRequest(std::move(frame.bytes), words, Fate::passed);
    }
    const auto action = shared_.rules.apply(Direction::request, *words);
    switch (action.kind()) {
    case Action::Kind::swallow:
        return passRequest(std::move(frame.bytes), words, Fate::lostInAll);
    case Action::Kind::duplicate:
        passRequest(frame.bytes, words, Fate::passed);
        return passRequest(std::move(frame.bytes), words, Fate::lost);
    case Action::Kind::replace:
        return replaceRequest(action.bytes());
    case Action::Kind::cutAfterForward:
        expectReplies(words, Fate::lost);
        return requests_.push({.bytes = std::move(frame.bytes), .then = Item::Then::closeClient, .request = words});
    case Action::Kind::drop:
    case Action::Kind::cut:
    case Action::Kind::truncate:
        break;
    default:
        expectReplies(words, Fate::passed);
    }
    pushFrame(requests_, std::move(frame.bytes), action, words);
    if (isCommand(*words, "PSYNC") || isCommand(*words, "SYNC")) {
        becomeOpaque();
    }
}

void Connection::passRequest(std::string bytes, const std::shared_ptr<const Words>& words, Fate ofReply)
{
    expectReplies(words, ofReply);
    requests_.push({.bytes = std::move(bytes), .request = words});
}

void Connection::replaceRequest(const std::string& bytes)
{
    RespFramer framer;
    framer.feed(bytes);
    while (auto frame = framer.next()) {
        const auto words = std::make_shared<const Words>(std::move(frame->words));
        passRequest(std::move(frame->bytes), words, Fate::passed);
    }
    requests_.push({.bytes = framer.rest()});
}

void Connection::expectReplies(const std::shared_ptr<const Words>& words, Fate fate)
{
    if (words->empty()) {
        return;
    }
    const bool onePerChannel = Subscriptions::isConfirmation(kindOf(*words));
    pending_.push_back({words, onePerChannel ? words->size() - 1 : 1, fate});
}

void Connection::becomeOpaque()
{
    requests_.opaque = replies_.opaque = true;
    replies_.push({.bytes = replies_.framer.rest()});
}

void Connection::takeReply(Frame frame)
{
    const auto request = settle(frame);
    replies_.lost = replies_.lost || request.fate == Fate::lostInAll;
    if (client_ >= 0 && !replies_.lost && request.fate == Fate::passed) {
        const auto action = shared_.rules.apply(Direction::reply, *request.words);
        pushFrame(replies_, std::move(frame.bytes), action);
    }
}

void Connection::takePush(Frame frame)
{
    if (client_ >= 0 && !replies_.lost) {
        const auto action = shared_.rules.apply(Direction::push, frame.words);
        if (action.kind() != Action::Kind::drop && action.kind() != Action::Kind::swallow) {
            pushFrame(replies_, std::move(frame.bytes), action);
        }
    }
}

bool Connection::isPush(const Frame& frame) const
{
    if ((frame.marker() != '*' && frame.marker() != '>') || frame.words.empty() || isAwaitedConfirmation(frame)) {
        return false;
    }
    const auto& kind = frame.words.front();
    return frame.marker() == '>' ||
           (subscriptions_.any() && (Subscriptions::isMessage(kind) || Subscriptions::isConfirmation(kind)));
}

bool Connection::isAwaitedConfirmation(const Frame& frame) const
{
    return frame.words.size() == 3 && Subscriptions::isConfirmation(frame.words.front()) && !pending_.empty() &&
           kindOf(*pending_.front().words) == frame.words.front();
}

Pending Connection::settle(const Frame& reply)
{
    if (pending_.empty()) {
        return {std::make_shared<const Words>()};
    }
    const bool confirmation = isAwaitedConfirmation(reply);
    auto& request = pending_.front();
    if (confirmation && request.replies == 0) {
        request.replies = subscriptions_.confirmationsOf(reply.words[0]);
    }
    if (confirmation) {
        subscriptions_.confirm(reply.words[0], reply.words[1]);
    }
    auto settled = request;
    if (!confirmation || --request.replies == 0) { // an error answers a whole SUBSCRIBE
        pending_.pop_front();
    }
    return settled;
}

void Connection::flush(Clock::time_point now)
{
    flush(requests_, server_, now);
    flush(replies_, client_, now);
    passEnds();
}

void Connection::flush(Lane& lane, int socket, Clock::time_point now)
{
    while (socket >= 0 && lane.sendable(now)) {
        auto& item = lane.outbox.front();
        const auto left = item.bytes.size() - item.sent;
        const auto size = item.pace.count() > 0 ? std::min<std::size_t>(left, 1) : left;
        const auto sent = size == 0 ? 0 : ::send(socket, &item.bytes[item.sent], size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR && socket == client_) { // its last bytes are still to be read
                loseReplies();
            } else if (errno != EAGAIN && errno != EINTR) { // the server's last bytes are still to be read
                lane.outbox.clear();
                lane.held = 0;
            }
            return;
        }
        item.sent += static_cast<std::size_t>(sent);
        lane.nextByte = now + item.pace;
        if (item.sent == item.bytes.size() && !finish(lane)) {
            return;
        }
    }
}

bool Connection::finish(Lane& lane)
{
    const auto item = std::move(lane.outbox.front());
    lane.outbox.pop_front();
    lane.held -= item.bytes.size();
    if (item.request && !item.request->empty()) {
        shared_.record(number_, *item.request);
    }
    if (item.then == Item::Then::closeBoth) {
        close(FaultProxy::Close::orderly);
    } else if (item.then == Item::Then::closeClient) {
        closeSocket(client_, FaultProxy::Close::orderly);
        loseReplies();
    }
    return item.then == Item::Then::goOn;
}

void Connection::loseReplies()
{
    replies_.lost = true;
    replies_.outbox.clear();
    replies_.held = 0;
}

void Connection::passEnds()
{
    const bool lostReplyCame = client_ < 0 && pending_.empty();
    if (replies_.allPassedOn() || lostReplyCame) {
        close(FaultProxy::Close::orderly);
    } else if (requests_.allPassedOn() && !requests_.endPassedOn) {
        ::shutdown(server_, SHUT_WR);
        requests_.endPassedOn = true;
    }
}

} // namespace redislock::test::proxy
