/// @file
/// A user of the server whose rights are taken away and given back.
#pragma once

#include "redislock/config.hpp"
#include "support/raw_redis.hpp"

#include <array>

namespace redislock::test {

class DeniedUser {
public:
    struct Way {
        const char* how;
        const char* error; ///< the error reply to its requests, or to its connections
        RawRedis::Arguments rights;
        bool ends; ///< whether its connections end too
    };

    /// The ways in which the server can deny the user.
    static std::array<Way, 2> ways()
    {
        return {
            {{"switched off", "WRONGPASS", {"off"}, true}, {"may run no scripts", "NOPERM", {"-@scripting"}, false}}};
    }

    /// Makes the user, and sets it in the configuration of clients.
    DeniedUser(RawRedis& redis, Config& config) : redis_(redis)
    {
        config.username = "locker";
        config.password = "pw";
        set({"on", ">pw", "~*", "&*", "+@all"});
    }

    void deny(const Way& way)
    {
        set(way.rights);
        if (way.ends) {
            redis_.command({"CLIENT", "KILL", "USER", "locker"});
        }
    }
    void allow() { set({"on", "+@all"}); }

private:
    void set(const RawRedis::Arguments& rights)
    {
        RawRedis::Arguments command{"ACL", "SETUSER", "locker"};
        command.insert(command.end(), rights.begin(), rights.end());
        redis_.command(command);
    }

    RawRedis& redis_;
};

} // namespace redislock::test
