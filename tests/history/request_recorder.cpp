#include "history/request_recorder.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace redislock::test::history {
namespace {

/// The text between quotes from @p begin on; sets @p begin behind it. Escapes keep the character that is escaped: names
/// of locks in histories are plain.
std::string quoted(std::string_view line, std::size_t& begin)
{
    std::string word;
    for (++begin; begin < line.size() && line[begin] != '"'; ++begin) {
        if (line[begin] == '\\' && begin + 1 < line.size()) {
            ++begin;
        }
        word += line[begin];
    }
    ++begin;
    return word;
}

bool isEval(const std::string& word)
{
    return word == "EVALSHA" || word == "EVAL" || word == "evalsha" || word == "eval";
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

std::optional<Record> requestOf(const std::vector<std::string>& words)
{
    constexpr std::size_t renew = 6; // EVALSHA <sha1> 1 <lock> <holder> <lease>
    constexpr std::size_t lock = 7;  // ... <count>
    constexpr std::size_t unlock = 8;
    if (words.size() < renew || words.size() > unlock || !isEval(words[0]) || words[2] != "1") {
        return std::nullopt;
    }
    const auto* verb = words.size() == renew ? "renew" : words.size() == lock ? "lock" : "unlock";
    return Record{.holder = words[4], .lock = words[3], .op = Op::request, .error = verb};
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
            if (auto record = requestOf(wordsOfMonitorLine(line->text()))) {
                recorder_->write(std::move(*record));
            }
        }
    } catch (const std::exception&) {
        return; // the server was killed
    }
}

} // namespace redislock::test::history
