#include "support/resp_framer.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace redislock::test {
namespace {

constexpr std::size_t mostWords = 1024;
constexpr std::int64_t longestBlob = 512LL * 1024 * 1024;
constexpr std::int64_t longestAggregate = 1024LL * 1024;
constexpr std::size_t longestLine = 64UL * 1024;

/// A length: -1 stands for nil.
std::optional<std::int64_t> readLength(std::string_view text, std::int64_t most)
{
    std::int64_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (error != std::errc{} || end != text.data() + text.size() || length < -1 || length > most) {
        return std::nullopt;
    }
    return length;
}

bool isLetter(char c) noexcept
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

} // namespace

std::optional<Frame> RespFramer::next()
{
    while (!broken_) {
        switch (readElement()) {
        case Step::more:
            break;
        case Step::incomplete:
            return std::nullopt;
        case Step::element:
            Frame frame{buffer_.substr(frameBegin_, scanned_ - frameBegin_), std::exchange(words_, {})};
            frameBegin_ = scanned_;
            outstanding_ = 1;
            discardRead();
            return frame;
        }
    }
    return std::nullopt;
}

std::string RespFramer::rest()
{
    auto bytes = buffer_.substr(frameBegin_);
    buffer_.clear();
    words_.clear();
    frameBegin_ = scanned_ = lineScanned_ = 0;
    outstanding_ = 1;
    return bytes;
}

RespFramer::Step RespFramer::readElement()
{
    const auto lineEnd = buffer_.find("\r\n", std::max(scanned_, lineScanned_));
    if (lineEnd == std::string::npos) {
        if (buffer_.size() - scanned_ > longestLine) {
            return giveUp();
        }
        // The last byte may be the first byte of a line end.
        lineScanned_ = buffer_.empty() ? 0 : buffer_.size() - 1;
        return Step::incomplete;
    }
    if (lineEnd == scanned_) { // an empty inline command
        return outstanding_ == 1 && scanned_ == frameBegin_ ? finishElement(lineEnd + 2) : giveUp();
    }
    const auto line = std::string_view(buffer_).substr(scanned_ + 1, lineEnd - scanned_ - 1);
    switch (buffer_[scanned_]) {
    case '$':
    case '=':
    case '!':
        return readBlob(line, lineEnd + 2);
    case '*':
    case '~':
    case '>':
    case '%':
        return readAggregate(line, lineEnd + 2);
    case '+':
    case '-':
    case ':':
    case '_':
    case ',':
    case '#':
    case '(':
        addWord(line);
        return finishElement(lineEnd + 2);
    default:
        return readInline(line, lineEnd + 2);
    }
}

RespFramer::Step RespFramer::readBlob(std::string_view line, std::size_t bodyBegin)
{
    const auto length = readLength(line, longestBlob);
    if (!length) {
        return giveUp();
    }
    if (*length < 0) {
        addWord({});
        return finishElement(bodyBegin);
    }
    const auto size = static_cast<std::size_t>(*length);
    if (buffer_.size() < bodyBegin + size + 2) {
        lineScanned_ = scanned_; // the short header is read again with each piece, the body is not
        return Step::incomplete;
    }
    if (buffer_.compare(bodyBegin + size, 2, "\r\n") != 0) {
        return giveUp();
    }
    addWord(std::string_view(buffer_).substr(bodyBegin, size));
    return finishElement(bodyBegin + size + 2);
}

RespFramer::Step RespFramer::readAggregate(std::string_view line, std::size_t bodyBegin)
{
    const auto length = readLength(line, longestAggregate);
    if (!length) {
        return giveUp();
    }
    const auto elements = static_cast<std::uint64_t>(std::max<std::int64_t>(*length, 0));
    outstanding_ += buffer_[scanned_] == '%' ? 2 * elements : elements;
    return finishElement(bodyBegin);
}

RespFramer::Step RespFramer::readInline(std::string_view line, std::size_t bodyBegin)
{
    if (scanned_ != frameBegin_ || !isLetter(buffer_[scanned_])) {
        return giveUp();
    }
    const auto whole = std::string_view(line.data() - 1, line.size() + 1);
    for (std::size_t begin = 0; begin < whole.size();) {
        const auto end = std::min(whole.find(' ', begin), whole.size());
        if (end > begin) {
            addWord(whole.substr(begin, end - begin));
        }
        begin = end + 1;
    }
    return finishElement(bodyBegin);
}

RespFramer::Step RespFramer::finishElement(std::size_t end)
{
    scanned_ = lineScanned_ = end;
    return --outstanding_ == 0 ? Step::element : Step::more;
}

void RespFramer::addWord(std::string_view word)
{
    if (words_.size() < mostWords) {
        words_.emplace_back(word);
    }
}

RespFramer::Step RespFramer::giveUp()
{
    broken_ = true;
    return Step::incomplete;
}

void RespFramer::discardRead()
{
    // Moving the rest to the front after each of many small frames would take quadratic time.
    if (frameBegin_ == buffer_.size() || frameBegin_ > 64UL * 1024) {
        buffer_.erase(0, frameBegin_);
        scanned_ = lineScanned_ = 0;
        frameBegin_ = 0;
    }
}

} // namespace redislock::test
