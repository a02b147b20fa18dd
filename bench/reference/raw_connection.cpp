#include "reference/raw_connection.hpp"

#include "measurement.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <stdexcept>

namespace redislock::bench {

RawConnection::RawConnection(const std::string& host, std::uint16_t port) : context_(redisConnect(host.c_str(), port))
{
    if (!context_ || context_->err != 0) {
        throw std::runtime_error(fmt::format("reference: cannot connect to {}:{}: {}", host, port,
                                             context_ ? context_->errstr : "out of memory"));
    }
}

RawConnection::Reply RawConnection::command(std::initializer_list<std::string_view> words)
{
    std::array<const char*, 8> begins{};
    std::array<std::size_t, 8> sizes{};
    std::size_t count = 0;
    for (const auto word : words) {
        begins.at(count) = word.data();
        sizes.at(count) = word.size();
        ++count;
    }
    void* answer = redisCommandArgv(context_.get(), static_cast<int>(count), begins.data(), sizes.data());
    Reply reply(static_cast<redisReply*>(answer));
    if (!reply) {
        throw std::runtime_error(fmt::format("reference: no answer to {}: {}", *words.begin(), context_->errstr));
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        throw std::runtime_error(fmt::format("reference: {}: {}", *words.begin(), reply->str));
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
