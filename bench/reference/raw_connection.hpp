/// @file
/// One blocking hiredis connection, as a program without this library would use it.
#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace redislock::bench {

class RawConnection {
public:
    struct Free {
        void operator()(redisContext* context) const noexcept { redisFree(context); }
        void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
    };
    using Reply = std::unique_ptr<redisReply, Free>;

    /// The most words of one command; more are refused with std::out_of_range.
    static constexpr std::size_t mostWords = 16;

    /// Connects; hiredis sets TCP_NODELAY. @throws std::runtime_error when it cannot.
    RawConnection(const std::string& host, std::uint16_t port);

    /// Sends one command and waits for the answer. Binary-safe.
    /// @throws std::runtime_error for an error reply, or none.
    Reply command(std::initializer_list<std::string_view> words);

    /// Sends one command with the next flush, without waiting.
    void append(std::initializer_list<std::string_view> words);
    /// Sends the appended commands, if they were not sent yet, and waits for the next answer.
    /// @throws std::runtime_error for an error reply, or none.
    Reply nextReply();

    /// SCRIPT LOAD. @return the SHA1 for EVALSHA.
    std::string load(std::string_view script);

private:
    Reply checked(void* answer, std::string_view what);

    std::unique_ptr<redisContext, Free> context_;
};

} // namespace redislock::bench
