#include "link/connect/last_errors.hpp"

#include "link/request/call.hpp"
#include "values/printable.hpp"

#include <algorithm>
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

void LastErrors::noteReply(const Reply& reply) noexcept
{
    if (reply.isError() && !isNoScript(reply)) { // the script is sent whole
        noteReply(classify(reply.text).error, reply.text);
    }
}

void LastErrors::noteReply(Reason reason, std::string_view line) noexcept
{
    try {
        const bool isFit = !line.empty() && !repeatsSecret(line);
        keep(reason, isFit ? '"' + printable(withoutScript(line), 200) + '"' : std::string());
    } catch (const std::bad_alloc&) { // out of memory: messages say less
        return;
    }
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
    const auto words = about(code).text;
    return server_ + ": " + code.message() + (words.empty() ? words : ": " + words);
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
