// Where requests and replies begin and end.
#include "support/resp_framer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> framesOf(std::string_view bytes, std::size_t piece)
{
    RespFramer framer;
    std::vector<std::string> frames;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
        framer.feed(bytes.substr(0, piece));
        while (const auto frame = framer.next()) {
            frames.push_back(frame->bytes);
        }
    }
    EXPECT_FALSE(framer.broken());
    EXPECT_EQ(framer.rest(), "");
    return frames;
}

TEST(RespFramer, FindsTheSameFramesHoweverTheBytesArrive)
{
    const std::vector<std::string> expected = {
        "*2\r\n$3\r\nGET\r\n$4\r\n\r\n*1\r\n",
        "+OK\r\n",
        "-ERR no\r\n",
        ":-12\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "$0\r\n\r\n",
        "*3\r\n*2\r\n:1\r\n$-1\r\n*0\r\n+x\r\n",
        "PING hello\r\n",
        "\r\n",
        "%1\r\n+a\r\n*1\r\n:1\r\n",
        ">2\r\n+message\r\n$2\r\n\r\n\r\n",
        "_\r\n",
        "#t\r\n",
    };
    std::string stream;
    for (const auto& frame : expected) {
        stream += frame;
    }
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
        EXPECT_EQ(framesOf(stream, piece), expected) << "in pieces of " << piece;
    }
}

TEST(RespFramer, GivesTheWordsOfAFrame)
{
    RespFramer framer;
    framer.feed("*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n:7\r\nECHO  a b\r\n");
    EXPECT_THAT(framer.next().value_or(Frame{}).words, ElementsAre("SET", "\r\n", "7"));
    EXPECT_THAT(framer.next().value_or(Frame{}).words, ElementsAre("ECHO", "a", "b"));
}

TEST(RespFramer, StopsAtBytesThatAreNotResp)
{
    for (const std::string bad :
         {"$x\r\n", "$-2\r\n", "*99999999999\r\n", "$1\r\nabc\r\n", "*1\r\nPING\r\n", "@1\r\n"}) {
        RespFramer framer;
        framer.feed("+OK\r\n" + bad + "+rest\r\n");
        EXPECT_TRUE(framer.next()) << bad;
        EXPECT_FALSE(framer.next()) << bad;
        EXPECT_TRUE(framer.broken()) << bad;
        EXPECT_EQ(framer.rest(), bad + "+rest\r\n");
    }
}

} // namespace
} // namespace redislock::test
