#include "history/request_recorder.hpp"

#include "wire/script.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace redislock::test::history {
namespace {

/// The text between quotes from @p begin on; sets @p begin to the end of it. The only escape that occurs is that of a
/// line end, in scripts: names of locks in histories are plain.
std::string quoted(std::string_view line, std::size_t& begin)
{
    std::string word;
    for (++begin; begin < line.size() && line[begin] != '"'; ++begin) {
        if (line[begin] == '\\' && begin + 1 < line.size()) {
            ++begin;
            word += line[begin] == 'n' ? '\n' : line[begin];
        } else {
            word += line[begin];
        }
    }
    ++begin;
    return word;
}

namespace scripts = redislock::detail::scripts;

struct Verb {
    const redislock::detail::Script& script;
    std::string_view name;
};

const std::array verbs{
    Verb{scripts::redisLockLock, "lock"},     Verb{scripts::redisLockRenew, "renew"},
    Verb{scripts::redisLockUnlock, "unlock"}, Verb{scripts::fencedLockLock, "lock"},
    Verb{scripts::fairLockLock, "lock"},      Verb{scripts::fairLockUnlock, "unlock"},
    Verb{scripts::readLockLock, "lock"},      Verb{scripts::readLockRenew, "renew"},
    Verb{scripts::readLockUnlock, "unlock"},  Verb{scripts::writeLockLock, "lock"},
    Verb{scripts::writeLockUnlock, "unlock"},
};

/// Whether it is how Redisson takes a plain lock, whose leases are fixed: a script of one key with a lease and a holder.
bool isOfRedisson(const std::vector<std::string>& words)
{
    const auto isNumber = [](std::string_view text) { return text.find_first_not_of("0123456789") == text.npos; };
    return words.size() == 6 && words[0].starts_with("EVAL") && words[2] == "1" && isNumber(words[4]) &&
           words[5].find(':') != std::string::npos;
}

/// Whether these are the first words of EVALSHA, or EVAL, of the script.
bool asksFor(const redislock::detail::Script& script, const std::vector<std::string>& words)
{
    return words[0] == "EVALSHA" ? words[1] == script.sha1 : words[0] == "EVAL" && words[1] == script.text();
}

} // namespace

std::vector<std::string> wordsOfMonitorLine(std::string_view line)
{
    std::vector<std::string> words;
    const auto source = line.find('[');
    const auto end = line.find("] \"");
    if (source == std::string_view::npos || end == std::string_view::npos ||
        line.substr(source, end - source).ends_with(" lua")) {
        return words;
    }
    for (auto at = line.find('"', end); at != std::string_view::npos && at < line.size(); at = line.find('"', at)) {
        words.push_back(quoted(line, at));
    }
    return words;
}

std::vector<Record> requestsOf(const std::vector<std::string>& words)
{
    constexpr std::size_t lock = 3; // EVALSHA <sha1> <number of keys> <lock> ... <holder> ...
    if (words.size() <= lock) {
        return {};
    }
    const auto keys = std::strtoul(words[2].c_str(), nullptr, 10);
    const auto verb =
        std::find_if(verbs.begin(), verbs.end(), [&](const Verb& each) { return asksFor(each.script, words); });
    if (verb == verbs.end() && isOfRedisson(words)) {
        return {{.holder = words[lock + 2], .lock = words[lock], .op = Op::request, .error = "lock"}};
    }
    if (keys == 0 || words.size() <= lock + keys || verb == verbs.end()) {
        return {};
    }
    // a renewal concerns several locks: a holder and a lease for each
    const std::size_t locks = verb->name == "renew" ? (words.size() - lock - keys) / 2 : 1;
    std::vector<Record> requests;
    for (std::size_t i = 0; i < locks; ++i) {
        requests.push_back({.holder = words[lock + keys + 2 * i],
                            .lock = words[lock + i * (keys / locks)],
                            .op = Op::request,
                            .error = std::string(verb->name)});
    }
    return requests;
}

RequestRecorder::RequestRecorder(const testing::RedisServer& server, std::shared_ptr<Recorder> recorder)
    : redis_(server), recorder_(std::move(recorder))
{
}

void RequestRecorder::attach()
{
    detach();
    ending_ = false;
    redis_.disconnect();
    if (redis_.command({"MONITOR"}).isError()) {
        throw std::runtime_error("MONITOR was refused");
    }
    thread_ = std::thread([this] { run(); });
}

void RequestRecorder::detach() noexcept
{
    ending_ = true;
    if (thread_.joinable()) {
        thread_.join();
    }
}

void RequestRecorder::run() noexcept
{
    try {
        while (!ending_) {
            const auto line = redis_.receive(std::chrono::milliseconds(50));
            if (!line || !line->isStatus()) {
                continue;
            }
            for (auto& record : requestsOf(wordsOfMonitorLine(line->text()))) {
                recorder_->write(std::move(record));
            }
        }
    } catch (const std::exception&) {
        return; // the server was killed
    }
}

} // namespace redislock::test::history
