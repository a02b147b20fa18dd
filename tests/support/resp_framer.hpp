/// @file
/// Finds where RESP requests and replies begin and end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// One whole request or reply.
struct Frame {
    /// The frame's bytes as they came, binary-safe.
    std::string bytes;
    /// The leaves of the frame in order, without markers: the arguments of a request; the texts and numbers of a reply.
    /// At most 1024.
    std::vector<std::string> words;

    /// The first byte: `*`, `$`, `+`, `-`, `:` ...; a letter for an inline command.
    [[nodiscard]] char marker() const noexcept { return bytes.empty() ? '\0' : bytes.front(); }
};

/// Cuts a stream of bytes into frames: RESP2 and RESP3 values, and inline commands.
///
/// The framer looks at each byte once, however small the pieces are. After bytes that are not RESP the framer is broken
/// and returns no more frames; rest() returns the remaining bytes.
class RespFramer {
public:
    void feed(std::string_view bytes) { buffer_.append(bytes); }

    /// The next whole frame; empty when there is none yet, or when the framer is broken.
    [[nodiscard]] std::optional<Frame> next();
    [[nodiscard]] bool broken() const noexcept { return broken_; }
    /// Takes the bytes that are not part of a returned frame.
    [[nodiscard]] std::string rest();

private:
    enum class Step { more, element, incomplete };

    Step readElement();
    Step readBlob(std::string_view line, std::size_t bodyBegin);
    Step readAggregate(std::string_view line, std::size_t bodyBegin);
    Step readInline(std::string_view line, std::size_t bodyBegin);
    Step finishElement(std::size_t end);
    void addWord(std::string_view word);
    Step giveUp();
    void discardRead();

    std::string buffer_;
    std::size_t frameBegin_ = 0;    // of the frame being read
    std::size_t scanned_ = 0;       // the next element begins here
    std::size_t lineScanned_ = 0;   // no line end before this
    std::uint64_t outstanding_ = 1; // elements still to come, over all levels
    std::vector<std::string> words_;
    bool broken_ = false;
};

} // namespace redislock::test
