#include "history/replication_stream.hpp"

#include "history/keys.hpp"

#include <algorithm>
#include <charconv>
#include <regex>
#include <stdexcept>

namespace redislock::test::history {
namespace {

std::int64_t numberIn(std::string_view text)
{
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
        throw std::runtime_error("replication stream: not a number: " + std::string(text));
    }
    return number;
}

std::string inHex(std::string_view bytes)
{
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += digits[value / 16];
        text += digits[value % 16];
    }
    return text;
}

std::string upper(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return text;
}

} // namespace

void ReplicationStream::feed(std::string_view bytes)
{
    if (state_ == State::stream) {
        framer_.feed(bytes);
    } else {
        head_.append(bytes);
    }
}

std::optional<std::string> ReplicationStream::takeLine()
{
    const auto end = head_.find('\n');
    if (end == std::string::npos) {
        return std::nullopt;
    }
    auto line = head_.substr(0, end);
    head_.erase(0, end + 1);
    if (line.ends_with('\r')) {
        line.pop_back();
    }
    return line;
}

bool ReplicationStream::skipSnapshot()
{
    if (state_ == State::rdb) {
        const auto size = std::min(rdbLeft_, head_.size());
        head_.erase(0, size);
        rdbLeft_ -= size;
        if (rdbLeft_ > 0) {
            return false;
        }
        state_ = State::stream;
        framer_.feed(head_);
        head_.clear();
        return true;
    }
    const auto line = takeLine();
    if (!line) {
        return false;
    }
    if (line->empty()) {
        return true;
    }
    if (state_ == State::header) {
        const auto space = line->rfind(' ');
        if (!line->starts_with("+FULLRESYNC ") || space == std::string::npos) {
            throw std::runtime_error("replication stream: refused: " + *line);
        }
        offset_ = numberIn(std::string_view(*line).substr(space + 1));
        state_ = State::rdbLength;
    } else {
        if (!line->starts_with('$') || line->starts_with("$EOF:")) {
            throw std::runtime_error("replication stream: no length of the snapshot: " + *line);
        }
        rdbLeft_ = static_cast<std::size_t>(numberIn(std::string_view(*line).substr(1)));
        state_ = State::rdb;
    }
    return true;
}

std::optional<StreamCommand> ReplicationStream::next()
{
    while (state_ != State::stream) {
        if (!skipSnapshot()) {
            return std::nullopt;
        }
    }
    auto frame = framer_.next();
    if (!frame) {
        if (framer_.broken()) {
            throw std::runtime_error("replication stream: bytes that are no command");
        }
        return std::nullopt;
    }
    offset_ += static_cast<std::int64_t>(frame->bytes.size());
    return StreamCommand{offset_, std::move(frame->words)};
}

Record StreamTranslator::make(const StreamCommand& command, Op op) const
{
    Record record;
    record.op = op;
    record.offset = command.offset;
    record.tx = tx_;
    record.lock = command.words.at(1);
    return record;
}

std::vector<Record> StreamTranslator::fieldsOf(const StreamCommand& command) const
{
    const auto& words = command.words;
    std::vector<Record> records;
    for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
        const bool isMode = words[i] == "mode";
        records.push_back(make(command, isMode ? Op::mode : Op::hset));
        if (isMode) {
            records.back().kind = words[i + 1];
        } else {
            records.back().holder = words[i];
            records.back().count = numberIn(words[i + 1]);
        }
    }
    return records;
}

std::optional<Record> StreamTranslator::valueOf(const StreamCommand& command, const std::string& name)
{
    if (const auto hold = holdKeyOf(command.words.at(1)); hold && command.words.size() > 4) {
        auto record = make(command, Op::pexpireat); // SET <key> 1 PXAT <ms>
        record.lock = hold->lock;
        record.holder = hold->holder;
        record.expiresMs = numberIn(command.words[4]);
        return record;
    }
    const auto lock = lockOfPrefixed(tokenKey, command.words.at(1));
    if (!lock) {
        return std::nullopt;
    }
    auto& token = tokens_[*lock];
    token = name == "SET" ? numberIn(command.words.at(2)) : token + 1;
    auto record = make(command, Op::token);
    record.lock = *lock;
    record.token = token;
    return record;
}

std::optional<Record> StreamTranslator::placeOf(const StreamCommand& command, const std::string& name)
{
    const auto& words = command.words;
    if (name == "LPOP") {
        popped_ = lockOfPrefixed(queueKey, words.at(1)).has_value();
        return std::nullopt;
    }
    const bool isTaken = name == "HSET";
    const auto lock = lockOfPrefixed(isTaken ? placesKey : queueTimesKey, words.at(1));
    if (!lock || (isTaken && (words.at(3).find_first_of("0123456789") != 0 || words.at(2) == "redisson"))) {
        return std::nullopt;
    }
    auto record = make(command, isTaken ? Op::queued : Op::unqueued);
    record.lock = *lock;
    record.holder = words.at(2);
    if (isTaken) {
        record.expiresMs = numberIn(std::string_view(words[3]).substr(0, words[3].find(' ')));
    } else {
        record.error = popped_ ? "first" : "left";
        popped_ = false;
    }
    return record;
}

std::vector<Record> StreamTranslator::leasesOf(const StreamCommand& command, const std::string& name) const
{
    const auto& words = command.words;
    std::vector<Record> records;
    const auto add = [&](Op op, const std::string& id) -> Record& {
        records.push_back(make(command, op));
        records.back().lock = *semaphoreOfLeases(words.at(1));
        records.back().holder = inHex(id);
        return records.back();
    };
    if (name == "ZADD") {
        for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
            add(Op::hset, words[i + 1]).count = 1;
            add(Op::pexpireat, words[i + 1]).expiresMs = numberIn(words[i]);
        }
    } else if (name == "ZREM") {
        for (std::size_t i = 2; i < words.size(); ++i) {
            add(Op::hdel, words[i]);
        }
    } else {
        add(Op::freed, {}).expiresMs = numberIn(words.at(3)); // ZREMRANGEBYSCORE <key> 0 <now>
    }
    return records;
}

/// The holders in a key that came from another server, as long as their bytes are not compressed there.
std::vector<Record> StreamTranslator::restored(const StreamCommand& command) const
{
    static const std::regex holder("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+");
    const auto& value = command.words.at(3);
    std::vector<Record> records;
    for (std::sregex_iterator next(value.begin(), value.end(), holder), end; next != end; ++next) {
        records.push_back(make(command, Op::hset));
        records.back().holder = next->str();
        records.back().count = 1;
    }
    return records;
}

std::vector<Record> StreamTranslator::translate(const StreamCommand& command)
{
    const auto& words = command.words;
    const auto name = words.empty() ? std::string() : upper(words.front());
    if (!inside_) {
        ++tx_;
    }
    if (name == "MULTI" || name == "EXEC") {
        inside_ = name == "MULTI";
        return {};
    }
    std::vector<Record> records;
    const bool isPlace = words.size() > 1 && lockOfPrefixed(placesKey, words[1]).has_value();
    if (name == "HSET" && !isPlace) {
        records = fieldsOf(command);
    } else if (name == "HINCRBY" && words.at(3) == "1") { // of other clients of the same keys
        records.push_back(make(command, Op::hset));
        records.back().holder = words[2];
        records.back().count = 1;
    } else if (name.starts_with("RESTORE")) {
        records = restored(command);
    } else if (name == "HDEL" && !isPlace) {
        for (std::size_t i = 2; i < words.size(); ++i) {
            records.push_back(make(command, Op::hdel));
            records.back().holder = words[i];
        }
    } else if (name == "DEL" || name == "UNLINK") {
        for (std::size_t i = 1; i < words.size(); ++i) {
            if (holdKeyOf(words[i]) || isOfAQueue(words[i]) ||
                isWaitingWriter(words[i])) { // a hold ends with its field
                continue;
            }
            records.push_back(make(command, Op::del));
            records.back().lock = words[i];
        }
    } else if (name == "PEXPIREAT" && !isOfAQueue(words.at(1))) {
        records.push_back(make(command, Op::pexpireat));
        records.back().expiresMs = numberIn(words.at(2));
    } else if (name == "PUBLISH") {
        records.push_back(make(command, Op::publish));
    } else if (name == "SET" || name == "INCR") {
        if (auto record = valueOf(command, name)) {
            records.push_back(std::move(*record));
        }
    } else if ((name == "ZADD" || name == "ZREM" || name == "ZREMRANGEBYSCORE") && semaphoreOfLeases(words.at(1))) {
        records = leasesOf(command, name);
    } else if (name == "LPOP" || name == "ZREM" || (name == "HSET" && isPlace)) {
        if (auto record = placeOf(command, name)) {
            records.push_back(std::move(*record));
        }
    }
    return records;
}

} // namespace redislock::test::history
