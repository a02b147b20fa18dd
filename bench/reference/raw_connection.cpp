#include "reference/raw_connection.hpp"

#include "measurement.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <stdexcept>

namespace redislock::bench {

namespace {

/// Words in the form that hiredis needs.
struct Words {
    explicit Words(std::initializer_list<std::string_view> words)
    {
        for (const auto word : words) {
            begins.at(static_cast<std::size_t>(count)) = word.data();
            sizes.at(static_cast<std::size_t>(count)) = word.size();
            ++count;
        }
    }

    std::array<const char*, RawConnection::mostWords> begins{};
    std::array<std::size_t, RawConnection::mostWords> sizes{};
    int count = 0;
};

} // namespace

RawConnection::RawConnection(const std::string& host, std::uint16_t port) : context_(redisConnect(host.c_str(), port))
{
    if (!context_ || context_->err != 0) {
        throw std::runtime_error(fmt::format("reference: cannot connect to {}:{}: {}", host, port,
                                             context_ ? context_->errstr : "out of memory"));
    }
}

RawConnection::Reply RawConnection::command(std::initializer_list<std::string_view> words)
{
    Words argv(words);
    return checked(redisCommandArgv(context_.get(), argv.count, argv.begins.data(), argv.sizes.data()), *words.begin());
}

void RawConnection::append(std::initializer_list<std::string_view> words)
{
    Words argv(words);
    expect(redisAppendCommandArgv(context_.get(), argv.count, argv.begins.data(), argv.sizes.data()) == REDIS_OK,
           "the memory for a pipeline");
}

RawConnection::Reply RawConnection::nextReply()
{
    void* answer = nullptr;
    (void)redisGetReply(context_.get(), &answer); // null when that failed
    return checked(answer, "a pipeline");
}

RawConnection::Reply RawConnection::checked(void* answer, std::string_view what)
{
    Reply reply(static_cast<redisReply*>(answer));
    if (!reply) {
        throw std::runtime_error(fmt::format("reference: no answer to {}: {}", what, context_->errstr));
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        throw std::runtime_error(fmt::format("reference: {}: {}", what, reply->str));
    }
    return reply;
}

std::string RawConnection::load(std::string_view script)
{
    const auto reply = command({"SCRIPT", "LOAD", script});
    expect(reply->type == REDIS_REPLY_STRING, "the reply to SCRIPT LOAD");
    return {reply->str, static_cast<std::size_t>(reply->len)};
}

} // namespace redislock::bench
