#include "simulation/request.hpp"

#include "core/hold.hpp"
#include "core/renewal_call.hpp"

#include <charconv>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace redislock::simulation {

using detail::HoldCall;
using detail::KindTraits;

namespace {

constexpr detail::ScriptUse KindTraits::*uses[] = {&KindTraits::lock, &KindTraits::unlock, &KindTraits::renew,
                                                   &KindTraits::pttl, &KindTraits::holder, &KindTraits::forceUnlock};

struct Known {
    const detail::Script* script;
    const KindTraits* kind; ///< a kind that uses the script; null: it is not a script of a lock
};

constexpr const detail::Script* counterScripts[] = {
    &detail::scripts::counterTrySet,
    &detail::scripts::counterGet,
    &detail::scripts::semaphoreAcquire,
    &detail::scripts::semaphoreAdd,
    &detail::scripts::semaphoreDrain,
    &detail::scripts::semaphoreWithdraw,
    &detail::scripts::permitExpirableSemaphoreAcquire,
    &detail::scripts::permitExpirableSemaphoreRelease,
    &detail::scripts::permitExpirableSemaphoreLease,
    &detail::scripts::permitExpirableSemaphoreCount,
    &detail::scripts::countDownLatchCountDown,
};

/// The scripts, by their SHA1 and by their texts.
const std::unordered_map<std::string, Known>& knownScripts()
{
    static const auto all = [] {
        std::unordered_map<std::string, Known> known;
        const auto add = [&known](const detail::Script* script, const KindTraits* kind) {
            known.insert({std::string(script->sha1), {script, kind}});
            known.insert({script->text(), {script, kind}});
        };
        for (std::size_t i = 0; i < detail::lockKinds; ++i) {
            const KindTraits& kind = KindTraits::of(static_cast<detail::LockKind>(i));
            for (const auto use : uses) {
                add((kind.*use).script, &kind);
            }
        }
        for (const auto* script : counterScripts) {
            add(script, nullptr);
        }
        return known;
    }();
    return all;
}

/// Takes a number and the end of its line.
std::size_t takeNumber(std::string_view& bytes)
{
    std::size_t number = 0;
    const auto end = std::from_chars(bytes.data() + 1, bytes.data() + bytes.size(), number).ptr;
    bytes.remove_prefix(static_cast<std::size_t>(end - bytes.data()) + 2);
    return number;
}

/// Takes the words of one request.
std::vector<std::string_view> takeWords(std::string_view& bytes)
{
    std::vector<std::string_view> words(takeNumber(bytes));
    for (auto& word : words) {
        const auto size = takeNumber(bytes);
        word = bytes.substr(0, size);
        bytes.remove_prefix(size + 2);
    }
    return words;
}

Request requestOf(const std::vector<std::string_view>& words)
{
    Request request;
    request.name = words.size() > 1 ? words[1] : std::string_view();
    if (words[0] == "SUBSCRIBE" || words[0] == "UNSUBSCRIBE" || words[0] == "PING") {
        request.verb = words[0] == "SUBSCRIBE"     ? Request::Verb::subscribe
                       : words[0] == "UNSUBSCRIBE" ? Request::Verb::unsubscribe
                                                   : Request::Verb::ping;
        return request;
    }
    if (words[0] == "WAIT") {
        request.verb = Request::Verb::wait;
        request.arguments.assign(words.begin() + 1, words.end());
        return request;
    }
    if (words[0] == "DEL") {
        request.verb = Request::Verb::del;
        request.otherKeys.assign(words.begin() + 2, words.end());
        return request;
    }
    const Known& known = knownScripts().at(std::string(words.at(1)));
    std::size_t keys = 0;
    std::from_chars(words.at(2).data(), words.at(2).data() + words.at(2).size(), keys);
    request.byText = words[0] == "EVAL";
    request.script = known.script;
    request.kind = known.kind;
    request.name = words.at(3);
    request.otherKeys.assign(words.begin() + 4, words.begin() + 3 + static_cast<std::ptrdiff_t>(keys));
    request.arguments.assign(words.begin() + 3 + static_cast<std::ptrdiff_t>(keys), words.end());
    return request;
}

} // namespace

std::vector<Request> requestsIn(std::string_view bytes)
{
    std::vector<Request> requests;
    while (!bytes.empty()) {
        requests.push_back(requestOf(takeWords(bytes)));
    }
    return requests;
}

void noteKind(const detail::Call& call, Request& request) noexcept
{
    if (const auto* about = dynamic_cast<const HoldCall*>(&call)) {
        request.kind = &about->hold().lock->traits();
    }
}

std::vector<Request> partsOf(const Request& request)
{
    if (!request.does(&KindTraits::renew)) {
        return {request};
    }
    std::vector<Request> parts;
    const std::size_t keys = 1 + (request.kind->renew.withCompanions ? request.kind->companionCount : 0);
    for (std::size_t i = 0; i < request.arguments.size() / 2; ++i) {
        Request part = request;
        part.name = i == 0 ? request.name : request.otherKeys.at(i * keys - 1);
        const auto others = request.otherKeys.begin() + static_cast<std::ptrdiff_t>(i * keys);
        part.otherKeys.assign(others, others + static_cast<std::ptrdiff_t>(keys - 1));
        part.arguments = {request.arguments[2 * i], request.arguments[2 * i + 1]};
        parts.push_back(std::move(part));
    }
    return parts;
}

Situation situationOf(const detail::Call& call, const Request& request) noexcept
{
    namespace scripts = detail::scripts;
    const auto* about = dynamic_cast<const HoldCall*>(&call);
    if (dynamic_cast<const detail::RenewalCall*>(&call) != nullptr) {
        return Situation::renewalAsking;
    }
    if (about == nullptr) {
        const auto isOneOf = [&](auto... any) { return ((request.script == any) || ...); };
        return isOneOf(&scripts::semaphoreAcquire, &scripts::permitExpirableSemaphoreAcquire) ? Situation::acquireAsking
               : isOneOf(&scripts::semaphoreAdd, &scripts::semaphoreWithdraw, &scripts::permitExpirableSemaphoreRelease,
                         &scripts::countDownLatchCountDown)
                   ? Situation::releaseAsking
                   : Situation::queryAsking;
    }
    if (about->verb() == HoldCall::Verb::unlock) {
        return Situation::releaseAsking;
    }
    return about->level() == detail::Level::nested ? Situation::nestedAsking : Situation::acquireAsking;
}

} // namespace redislock::simulation
