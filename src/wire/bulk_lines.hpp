/// @file
/// Long answers, line by line, and what the lines of INFO say.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace redislock::detail {

/// Decodes one reply that is a bulk string (or an error) as its bytes come, and hands out its lines one by one: it
/// keeps at most one line, however long the reply is. Pure: no I/O.
class BulkLines {
public:
    static constexpr std::size_t maxLine = 4096; ///< the rest of a longer line is dropped

    enum class Status : std::uint8_t {
        needMore,
        complete,
        refused, ///< an error reply: see error()
        broken,  ///< something else, or more bytes than the reply has
    };

    /// Takes the next bytes. @param onLine called with each line, without its end; the view is valid in the call only.
    template <class OnLine>
    Status feed(std::string_view bytes, OnLine onLine)
    {
        if (state_ == State::header) {
            bytes = readHeader(bytes);
        }
        if (state_ == State::body) {
            const auto part = bytes.substr(0, left_);
            bytes.remove_prefix(part.size());
            left_ -= part.size();
            splitLines(part, onLine);
            if (left_ == 0) {
                finishLine(onLine);
                state_ = State::end;
            }
        }
        if (state_ == State::end) {
            const auto part = bytes.substr(0, 2 - ended_);
            ended_ += part.size();
            bytes.remove_prefix(part.size());
            state_ = ended_ == 2 ? State::complete : State::end;
        }
        if (!bytes.empty() && state_ != State::header) {
            return Status::broken;
        }
        return state_ == State::complete  ? Status::complete
               : state_ == State::refused ? Status::refused
               : state_ == State::broken  ? Status::broken
                                          : Status::needMore;
    }

    /// The line of an error reply, without its mark.
    [[nodiscard]] const std::string& error() const noexcept { return line_; }

private:
    enum class State : std::uint8_t { header, body, end, complete, refused, broken };

    /// @return what comes after the header.
    std::string_view readHeader(std::string_view bytes)
    {
        const auto end = bytes.find('\n');
        line_.append(bytes.substr(0, end));
        if (end == std::string_view::npos) {
            state_ = line_.size() > maxLine ? State::broken : State::header;
            return {};
        }
        line_.resize(line_.size() - (line_.ends_with('\r') ? 1 : 0));
        const std::string_view digits = std::string_view(line_).substr(std::min<std::size_t>(1, line_.size()));
        const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), left_);
        if (line_.starts_with('-')) {
            line_.erase(0, 1);
            state_ = State::refused;
        } else if (line_.starts_with('$') && failure == std::errc() && stop == digits.data() + digits.size()) {
            line_.clear();
            state_ = State::body;
        } else {
            state_ = State::broken;
        }
        return bytes.substr(end + 1);
    }

    template <class OnLine>
    void splitLines(std::string_view part, OnLine& onLine)
    {
        for (auto end = part.find('\n'); end != std::string_view::npos; end = part.find('\n')) {
            append(part.substr(0, end));
            finishLine(onLine);
            part.remove_prefix(end + 1);
        }
        append(part);
    }

    void append(std::string_view part) { line_.append(part.substr(0, maxLine - std::min(maxLine, line_.size()))); }

    template <class OnLine>
    void finishLine(OnLine& onLine)
    {
        if (!line_.empty()) {
            onLine(std::string_view(line_));
            line_.clear();
        }
    }

    State state_ = State::header;
    std::size_t left_ = 0;  ///< bytes left of the string
    std::size_t ended_ = 0; ///< how many of the two bytes behind the string have come
    std::string line_;
};

/// A field in a line of CLIENT LIST (`id=7 addr=127.0.0.1:50222 … name=shop …`); empty if it is not there.
inline std::string_view fieldOf(std::string_view line, std::string_view field) noexcept
{
    for (std::size_t at = 0; at < line.size();) {
        const auto end = std::min(line.find(' ', at), line.size());
        const auto word = line.substr(at, end - at);
        if (word.size() > field.size() && word.starts_with(field) && word[field.size()] == '=') {
            return word.substr(field.size() + 1);
        }
        at = end + 1;
    }
    return {};
}

/// The value of a line `field:value`; empty if there is none.
inline std::string_view infoField(std::string_view info, std::string_view field) noexcept
{
    for (std::size_t at = 0; at < info.size();) {
        const auto end = std::min(info.find('\n', at), info.size());
        auto line = info.substr(at, end - at);
        line.remove_suffix(line.ends_with('\r') ? 1 : 0);
        if (line.size() > field.size() && line.starts_with(field) && line[field.size()] == ':') {
            return line.substr(field.size() + 1);
        }
        at = end + 1;
    }
    return {};
}

/// The value as a number; 0 for anything else.
inline std::uint64_t infoNumber(std::string_view info, std::string_view field) noexcept
{
    const auto text = infoField(info, field);
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

} // namespace redislock::detail
