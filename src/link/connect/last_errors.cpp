#include "link/connect/last_errors.hpp"

#include "link/request/call.hpp"
#include "values/printable.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>

namespace redislock::detail {

namespace {

/// Leaves out what Redis adds about the script in which an error happened: " script: <sha1>, on @user_script:1."
std::string_view withoutScript(std::string_view line) noexcept
{
    return line.substr(0, line.find(" script: "));
}

/// Servers repeat arguments, shortened and escaped: a piece of a secret is as bad as the whole.
bool repeats(std::string_view line, std::string_view secret) noexcept
{
    const std::size_t piece = std::min<std::size_t>(secret.size(), 4);
    for (std::size_t at = 0; piece > 0 && at + piece <= secret.size(); ++at) {
        if (line.find(secret.substr(at, piece)) != std::string_view::npos) {
            return true;
        }
    }
    return false;
}

/// The commands of which a user may not run one: the server names it, or the line of the script that calls it. An error
/// that the script passes on has no line: then it is one of those whose errors the script catches.
std::vector<std::string> deniedCommands(std::string_view line, const Script* script)
{
    const auto between = [](std::string_view text, std::string_view before, std::string_view after) {
        const auto at = text.find(before);
        const auto rest = at == std::string_view::npos ? std::string_view() : text.substr(at + before.size());
        return std::string(rest.substr(0, rest.find(after)));
    };
    if (auto named = between(line, "run the '", "'"); !named.empty()) {
        return {std::move(named)};
    }
    std::vector<std::string> commands;
    const std::string whole = script != nullptr ? script->text() : std::string();
    std::string_view text = whole;
    int number = 0;
    const auto digits = between(line, "@user_script:", " ");
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    for (int at = 1; !text.empty(); ++at) {
        const auto code = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(code.size() + 1, text.size()));
        auto command = between(code, number == 0 ? "pcall('" : "call('", "'");
        const bool isMeant = !command.empty() && (number == 0 || number == at);
        if (isMeant && std::ranges::find(commands, command) == commands.end()) {
            commands.push_back(std::move(command));
        }
    }
    return commands;
}

/// A key as a rule of an ACL names it: `?` for each byte that means something else there, or that nobody can type.
std::string asRule(std::string key)
{
    static constexpr std::string_view special = R"(*?[]\"')";
    const auto isOdd = [](char c) { return c <= ' ' || c > '~' || special.find(c) != std::string_view::npos; };
    std::replace_if(key.begin(), key.end() - (key.ends_with('*') ? 1 : 0), isOdd, '?');
    return key;
}

/// Which request was denied, the rules of an ACL that would allow it, and who knows them all.
std::string howToAllow(Reason denied, std::string_view line, const Call* call)
{
    const auto subject = call == nullptr ? Call::Subject() : call->subject();
    std::string keys;
    std::string rules;
    for (const auto& key : subject.keys) {
        keys.append(keys.empty() ? "\"" : ", \"").append(printable(key)).append("\"");
        if (denied == Reason(Cause::keyDenied)) {
            rules.append(" ~").append(asRule(key));
        }
    }
    if (denied == Reason(Cause::commandDenied)) {
        rules.clear();
        for (const auto& command : deniedCommands(line, subject.script)) {
            rules.append(" +").append(printable(command));
        }
        for (char& c : rules) { // scripts write commands in upper case
            c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        }
    }
    std::string text;
    if (!keys.empty()) {
        text.append(call->form == Call::Form::bySha ? " to EVALSHA" : " to EVAL");
        text.append(subject.keys.size() == 1 ? " with the key " : " with the keys ").append(keys, 0, 300);
    }
    if (!rules.empty()) {
        text.append("; grant").append(rules, 0, 300);
    }
    const auto name = subject.keys.empty() ? "NAME" : '"' + printable(subject.keys.front()) + '"';
    return text + "; redislock doctor " + name + " lists all missing rights";
}

/// A reply as a value in a message.
std::string inWords(const Reply& reply)
{
    switch (reply.kind) {
    case Reply::Kind::nil:
        return "nil";
    case Reply::Kind::integer:
        return std::to_string(reply.integer);
    case Reply::Kind::array:
        break;
    default:
        return '"' + printable(reply.text) + '"';
    }
    constexpr std::size_t most = 8;
    std::string all;
    for (std::size_t i = 0; i < std::min(reply.elements.size(), most); ++i) {
        all += (i > 0 ? ", " : "") + inWords(reply.elements[i]);
    }
    return '[' + all + (reply.elements.size() > most ? ", ...]" : "]");
}

} // namespace

LastErrors::LastErrors(std::string server, const std::string& password) : server_(std::move(server))
{
    hide(password);
}

/// What was kept before may repeat it already.
void LastErrors::hide(const std::string& secret)
{
    constexpr std::size_t most = 8;
    const std::lock_guard lock(mutex_);
    if (secret.empty() || (!secrets_.empty() && secrets_.back() == secret)) {
        return;
    }
    std::erase(secrets_, secret);
    secrets_.push_back(secret);
    if (secrets_.size() > most) {
        secrets_.erase(secrets_.begin());
    }
    for (auto& entry : entries_) {
        if (repeats(entry.words.text, secret)) {
            entry.words.text.clear();
        }
    }
}

void LastErrors::note(Reason reason, std::string_view words) noexcept
{
    try {
        keep(reason, repeatsSecret(words) ? std::string() : printable(words, 200));
    } catch (const std::bad_alloc&) { // out of memory: messages say less
        return;
    }
}

void LastErrors::noteReply(const Reply& reply, const Call* of) noexcept
{
    if (reply.isError() && !isNoScript(reply)) { // the script is sent whole
        noteReply(classify(reply.text).error, reply.text, of);
    }
}

void LastErrors::noteReply(Reason reason, std::string_view line, const Call* of) noexcept
try {
    const Reason why = classify(line).error;
    const auto advice = why == Errc::permissionDenied ? howToAllow(why, line, of) : std::string();
    const bool isFit = !line.empty() && !repeatsSecret(line);
    keep(reason, isFit            ? '"' + printable(withoutScript(line), 200) + '"' + advice
                 : advice.empty() ? std::string()
                                  : "an error" + advice);
} catch (const std::bad_alloc&) { // out of memory: messages say less
}

void LastErrors::noteUnfit(const Reply& reply) noexcept
try {
    const auto words = inWords(reply); // printable
    const bool isLong = words.size() > 200;
    keep(Errc::badReply, repeatsSecret(words) ? std::string() : isLong ? words.substr(0, 200) + "..." : words);
} catch (const std::bad_alloc&) { // out of memory: messages say less
}

void LastErrors::keep(Reason reason, std::string words)
{
    const std::lock_guard lock(mutex_);
    auto entry =
        std::find_if(entries_.begin(), entries_.end(), [reason](const Entry& each) { return each.reason == reason; });
    if (entry == entries_.end()) {
        entry = entries_.insert(entry, {reason, {}});
    }
    entry->words = {std::move(words), BootClock::now()};
}

bool LastErrors::repeatsSecret(std::string_view line) const noexcept
{
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(secrets_, [line](const std::string& secret) { return repeats(line, secret); });
}

LastErrors::Words LastErrors::about(const std::error_code& code) const
{
    if (!isOfServer(code)) {
        return {}; // a forked child must not wait for the mutex
    }
    const std::lock_guard lock(mutex_);
    const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& each) { return code == std::error_code(each.reason); });
    return entry == entries_.end() ? Words() : entry->words;
}

std::string LastErrors::sentence(const std::error_code& code) const
{
    return LockError(code, server_, about(code).text).what();
}

bool LastErrors::isOfServer(const std::error_code& code) noexcept
{
    switch (errcOf(code).value_or(Errc{})) {
    case Errc::badConfig:
    case Errc::authFailed:
    case Errc::permissionDenied:
    case Errc::noSuchDatabase:
    case Errc::notRedis:
    case Errc::tlsFailed:
    case Errc::unsupported:
    case Errc::unreachable:
    case Errc::serverRefused:
    case Errc::badReply:
        return true;
    default:
        return false;
    }
}

std::optional<Endpoint> mapped(const AddressMap& map, const Endpoint& announced, LastErrors& lastErrors)
try {
    const Endpoint at = map ? map(announced) : announced;
    return at.host.empty() ? std::nullopt : std::optional(at);
} catch (const std::bad_alloc&) {
    throw;
} catch (const std::exception& e) {
    lastErrors.note(Cause::addressNotMapped, announced.str() + ": " + printable(e.what()));
    return std::nullopt;
} catch (...) {
    lastErrors.note(Cause::addressNotMapped, announced.str());
    return std::nullopt;
}

} // namespace redislock::detail
