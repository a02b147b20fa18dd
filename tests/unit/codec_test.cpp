#include "wire/codec.hpp"

#include "redislock/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::string_literals;
using Status = ReplyReader::Status;

/// "nil", "1", "'text'", "+status", "-error", "[a b]".
std::string inWords(const Reply& reply)
{
    switch (reply.kind) {
    case Reply::Kind::nil:
        return "nil";
    case Reply::Kind::integer:
        return std::to_string(reply.integer);
    case Reply::Kind::text:
        return "'" + reply.text + "'";
    case Reply::Kind::status:
        return "+" + reply.text;
    case Reply::Kind::error:
        return "-" + reply.text;
    case Reply::Kind::array:
        break;
    }
    std::string all;
    for (const Reply& element : reply.elements) {
        all += (all.empty() ? "" : " ") + inWords(element);
    }
    return "[" + all + "]";
}

/// Every reply in the bytes, then "broken" or "more" if the remaining bytes are not a whole reply.
std::vector<std::string> decode(std::string_view bytes, std::size_t pieces = std::numeric_limits<std::size_t>::max())
{
    ReplyReader reader;
    std::vector<std::string> all;
    Status status = Status::needMore;
    for (std::size_t i = 0; i < bytes.size() && status != Status::broken; i += std::min(pieces, bytes.size() - i)) {
        reader.feed(bytes.substr(i, pieces));
        Reply reply;
        while ((status = reader.next(reply)) == Status::complete) {
            all.push_back(inWords(reply));
        }
    }
    if (status == Status::broken) {
        all.emplace_back("broken");
        Reply reply;
        reader.feed("+OK\r\n");
        EXPECT_EQ(reader.next(reply), Status::broken) << "what is broken stays broken";
    }
    return all;
}

using Words = std::vector<std::string>;

const std::string manyReplies = "+OK\r\n:1\r\n$-1\r\n$5\r\nhello\r\n*3\r\n:1\r\n$1\r\na\r\n*2\r\n$-1\r\n-ERR no\r\n"
                                "*0\r\n*-1\r\n-NOSCRIPT No matching script.\r\n$0\r\n\r\n:-42\r\n";
const Words manyWords = {
    "+OK", "1", "nil", "'hello'", "[1 'a' [nil -ERR no]]", "[]", "nil", "-NOSCRIPT No matching script.", "''", "-42"};

TEST(ReplyReader, DecodesEveryTypeOfTheProtocol)
{
    struct Case {
        const char* name;
        std::string bytes;
        std::string words;
    };
    const Case cases[] = {
        {"status", "+OK\r\n", "+OK"},
        {"empty status", "+\r\n", "+"},
        {"error", "-ERR something\r\n", "-ERR something"},
        {"integer", ":1000\r\n", "1000"},
        {"negative", ":-2\r\n", "-2"},
        {"largest", ":9223372036854775807\r\n", "9223372036854775807"},
        {"smallest", ":-9223372036854775808\r\n", "-9223372036854775808"},
        {"text", "$5\r\nhello\r\n", "'hello'"},
        {"any bytes", "$6\r\n\r\n\0\xff$+\r\n"s, "'\r\n\0\xff$+'"s},
        {"empty text", "$0\r\n\r\n", "''"},
        {"nil", "$-1\r\n", "nil"},
        {"nil array", "*-1\r\n", "nil"},
        {"empty array", "*0\r\n", "[]"},
        {"array", "*2\r\n:1\r\n+a\r\n", "[1 +a]"},
        {"nested", "*2\r\n*1\r\n:1\r\n*0\r\n", "[[1] []]"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(decode(c.bytes), Words{c.words}) << c.name;
    }
}

TEST(ReplyReader, GivesTheSameRepliesHoweverTheBytesAreCut)
{
    for (std::size_t pieces = 1; pieces <= manyReplies.size(); ++pieces) {
        EXPECT_EQ(decode(manyReplies, pieces), manyWords) << pieces;
    }
}

TEST(ReplyReader, GivesOnlyWholeReplies)
{
    for (std::size_t length = 0; length < manyReplies.size(); ++length) {
        const auto words = decode(std::string_view(manyReplies).substr(0, length));
        ASSERT_LT(words.size(), manyWords.size());
        EXPECT_TRUE(std::equal(words.begin(), words.end(), manyWords.begin())) << length;
    }
}

TEST(ReplyReader, AReplyThatIsUsedAgainKeepsNothingOfItsFormerSelf)
{
    ReplyReader reader;
    reader.feed("*2\r\n:1\r\n$5\r\nhello\r\n*2\r\n$-1\r\n:2\r\n$2\r\nab\r\n:3\r\n*1\r\n$-1\r\n$-1\r\n-ERR\r\n*0\r\n");
    Reply reply;
    Words words;
    while (reader.next(reply) == Status::complete) {
        words.push_back(inWords(reply));
    }
    EXPECT_EQ(words, (Words{"[1 'hello']", "[nil 2]", "'ab'", "3", "[nil]", "nil", "-ERR", "[]"}));
}

TEST(ReplyReader, CanBeMoved)
{
    ReplyReader first;
    first.feed("*2\r\n:1\r\n");
    Reply reply;
    EXPECT_EQ(first.next(reply), Status::needMore);
    ReplyReader second = std::move(first);
    second.feed(":2\r\n");
    EXPECT_EQ(second.next(reply), Status::complete);
    EXPECT_EQ(inWords(reply), "[1 2]");
}

TEST(ReplyReader, RefusesWhatIsNotTheProtocol)
{
    struct Case {
        const char* name;
        std::string bytes;
    };
    const Case cases[] = {
        {"HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n"},
        {"HTML", "<html>\r\n"},
        {"SSH", "SSH-2.0-OpenSSH_9.2p1\r\n"},
        {"TLS", "\x15\x03\x01\x00\x02\x02\x46"s},
        {"NUL", "\0\r\n"s},
        {"line ends only", "\r\n"},
        {"integer with letters", ":12a\r\n"},
        {"empty integer", ":\r\n"},
        {"integer that overflows", ":9223372036854775808\r\n"},
        {"integer that underflows", ":-9223372036854775809\r\n"},
        {"negative length", "$-2\r\n"},
        {"length with letters", "$5x\r\nhello\r\n"},
        {"length that overflows", "$9223372036854775808\r\n"},
        {"empty length", "$\r\n"},
        {"negative count", "*-2\r\n"},
        {"count with letters", "*1x\r\n:1\r\n"},
        {"count that overflows", "*9223372036854775808\r\n"},
        {"a billion elements", "*1111111111\r\n"},
        {"more elements than an int has", "*4294967297\r\n"},
        {"garbage inside an array", "*2\r\n:1\r\nHTTP\r\n"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(decode(c.bytes), Words{"broken"}) << c.name;
        EXPECT_EQ(decode(c.bytes, 1), Words{"broken"}) << c.name << ", byte by byte";
    }
}

TEST(ReplyReader, RefusesTheTypesOfTheNextProtocolThatNobodyAskedFor)
{
    struct Case {
        const char* name;
        std::string bytes;
    };
    const Case cases[] = {
        {"double", ",1.5\r\n"},
        {"infinite double", ",inf\r\n"},
        {"boolean", "#t\r\n"},
        {"big number", "(3492890328409238509324850943850943825024385\r\n"},
        {"verbatim text", "=8\r\ntxt:some\r\n"},
        {"map", "%1\r\n:1\r\n:2\r\n"},
        {"set", "~1\r\n:1\r\n"},
        {"push", ">2\r\n+invalidate\r\n*0\r\n"},
        {"attribute", "|1\r\n+ttl\r\n:1\r\n:1\r\n"},
        {"bulk error", "!5\r\nERR x\r\n"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(decode(c.bytes), Words{"broken"}) << c.name;
        EXPECT_EQ(decode("*2\r\n:1\r\n" + c.bytes), Words{"broken"}) << c.name << " inside an array";
    }
}

TEST(ReplyReader, RepliesBeforeTheGarbageAreGiven)
{
    EXPECT_EQ(decode("+OK\r\n:1\r\nHTTP/1.1 200 OK\r\n"), (Words{"+OK", "1", "broken"}));
}

TEST(ReplyReader, NestingHasALimit)
{
    std::string bytes;
    for (int depth = 0; depth < 5; ++depth) {
        bytes += "*1\r\n";
    }
    EXPECT_EQ(decode(bytes + ":1\r\n"), Words{"[[[[[1]]]]]"});
    for (int depth = 0; depth < 10'000; ++depth) {
        bytes += "*1\r\n";
    }
    EXPECT_EQ(decode(bytes), Words{"broken"});
}

TEST(ReplyReader, AReplyHasAtMost1024Elements)
{
    static_assert(ReplyReader::maxElements == 1024);
    std::string elements;
    for (int i = 0; i < 1024; ++i) {
        elements += ":1\r\n";
    }
    const auto whole = decode("*1024\r\n" + elements);
    ASSERT_EQ(whole.size(), 1U);
    EXPECT_EQ(whole.front().size(), 2U * 1024 + 1);
    EXPECT_EQ(decode("*1025\r\n"), Words{"broken"});
    EXPECT_EQ(decode("*1024\r\n*1\r\n"), Words{"broken"}) << "all levels together";
    EXPECT_EQ(decode("*2\r\n*1022\r\n" + elements.substr(0, 1022 * 4) + "*1\r\n"), Words{"broken"});
    // the limits apply to each reply separately
    std::string many;
    for (int i = 0; i < 3; ++i) {
        many += "*1024\r\n" + elements;
    }
    EXPECT_EQ(decode(many), Words(3, whole.front()));
}

TEST(ReplyReader, AReplyHasAtMostAMebibyte)
{
    static_assert(ReplyReader::maxBytes == 1024 * 1024);
    constexpr std::size_t read = 16 * 1024; // the size of a read of a connection
    const auto textOf = [](std::size_t size) {
        return "$" + std::to_string(size) + "\r\n" + std::string(size, 'x') + "\r\n";
    };
    EXPECT_EQ(decode(textOf(ReplyReader::maxBytes - 100), read).front().size(), ReplyReader::maxBytes - 98);
    EXPECT_EQ(decode(textOf(ReplyReader::maxBytes + read), read), Words{"broken"});
    EXPECT_EQ(decode("*3\r\n" + textOf(500'000) + textOf(500'000) + textOf(500'000), read), Words{"broken"});
    EXPECT_EQ(decode("+" + std::string(ReplyReader::maxBytes + read, 'x'), read), Words{"broken"});
    EXPECT_EQ(decode(":" + std::string(ReplyReader::maxBytes + read, '1'), read), Words{"broken"});
    EXPECT_EQ(decode("*" + std::string(ReplyReader::maxBytes + read, '1'), read), Words{"broken"});
}

TEST(ReplyReader, OtherLimitsMayBeGiven)
{
    ReplyReader reader({.elements = 2000, .bytes = 2'000'000});
    Reply reply;
    reader.feed("*2000\r\n");
    for (int i = 0; i < 2000; ++i) {
        reader.feed("$900\r\n" + std::string(900, 'x') + "\r\n");
    }
    EXPECT_EQ(reader.next(reply), Status::complete);
    EXPECT_EQ(reply.elements.size(), 2000U);
    reader.feed("*2001\r\n");
    EXPECT_EQ(reader.next(reply), Status::broken);
}

TEST(ReplyReader, ALengthAloneMakesItReserveNothing)
{
    ReplyReader reader;
    reader.feed("$9223372036854775807\r\n");
    Reply reply;
    EXPECT_NE(reader.next(reply), Status::complete);
    EXPECT_EQ(decode("$9223372036854775807\r\n" + std::string(2 * ReplyReader::maxBytes, 'x'), 16 * 1024),
              Words{"broken"});
}

TEST(ReplyReader, ManySmallRepliesInOnePieceAreNoLargeReply)
{
    std::string bytes;
    constexpr std::size_t count = 300'000;
    for (std::size_t i = 0; i < count; ++i) {
        bytes += "+OK\r\n";
    }
    ASSERT_GT(bytes.size(), ReplyReader::maxBytes);
    ReplyReader reader;
    reader.feed(bytes);
    Reply reply;
    std::size_t seen = 0;
    while (reader.next(reply) == Status::complete) {
        ++seen;
    }
    EXPECT_EQ(seen, count);
    reader.feed("+more\r\n");
    EXPECT_EQ(reader.next(reply), Status::complete);
}

TEST(ReplyReader, SurvivesAnyBytes)
{
    Random random(12);
    const std::string_view likely = "+-:$*\r\n0123456789ax%~>,#_(=";
    for (int run = 0; run < 20'000; ++run) {
        std::string bytes;
        for (auto left = random.next() % 64; left > 0; --left) {
            switch (random.next() % 4) {
            case 0:
                bytes += "\r\n";
                break;
            case 1:
                bytes.push_back(static_cast<char>(random.next()));
                break;
            default:
                bytes.push_back(likely[random.next() % likely.size()]);
                break;
            }
        }
        decode(bytes, 1 + random.next() % 20);
    }
}

TEST(ReplyReader, SurvivesRepliesWithWrongBytes)
{
    Random random(13);
    for (int run = 0; run < 20'000; ++run) {
        std::string bytes = manyReplies;
        for (auto left = 1 + random.next() % 3; left > 0; --left) {
            bytes[random.next() % bytes.size()] = static_cast<char>(random.next());
        }
        decode(bytes, 1 + random.next() % 40);
    }
}

} // namespace
} // namespace redislock::detail
