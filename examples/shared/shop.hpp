/// @file
/// The shop's data in Redis, as a program without any lock would keep it.
#pragma once

#include <redislock/redislock.hpp>

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace example {

/// One plain hiredis connection to a stock of one article and the list of its sales. Every thread has its own.
class Shop {
public:
    /// Connects. @param prefix of the keys. @throws std::runtime_error, with a sentence, if there is no connection.
    Shop(const redislock::Config& server, const std::string& prefix)
        : stockKey_(prefix + "stock"),
          salesKey_(prefix + "sales"),
          tokenKey_(prefix + "token"),
          lockName_(prefix + "lock"),
          connection_(connect(server))
    {
        constexpr timeval patience{5, 0};
        redisSetTimeout(connection_.get(), patience);
        if (!server.password.empty() && server.username.empty()) {
            command({"AUTH", server.password});
        } else if (!server.password.empty()) {
            command({"AUTH", server.username, server.password});
        }
        if (server.database != 0) {
            command({"SELECT", std::to_string(server.database)});
        }
        command({"PING"});
    }

    /// The name of the lock that guards the stock.
    [[nodiscard]] const std::string& lockName() const noexcept { return lockName_; }

    /// Puts @p units on sale. Both keys expire by themselves if nobody removes them.
    void open(long long units)
    {
        command({"SET", stockKey_, std::to_string(units), "EX", lifetime});
        command({"RPUSH", salesKey_, "opened"});
        command({"EXPIRE", salesKey_, lifetime});
    }
    void close()
    {
        // the last key is the counter that a FencedLock keeps for ever, so that its tokens grow
        command({"DEL", stockKey_, salesKey_, tokenKey_, lockName_, "redisson_lock_token:{" + lockName_ + "}"});
    }

    [[nodiscard]] long long stock()
    {
        const auto reply = command({"GET", stockKey_});
        if (reply->type != REDIS_REPLY_STRING) {
            throw std::runtime_error("somebody removed the key " + stockKey_);
        }
        return std::stoll(std::string(reply->str, static_cast<std::size_t>(reply->len)));
    }
    // XX and RPUSHX write only if the key exists: so the last request of a killed buyer cannot bring removed keys back.
    void setStock(long long units) { command({"SET", stockKey_, std::to_string(units), "EX", lifetime, "XX"}); }
    void recordSale(const std::string& buyer) { command({"RPUSHX", salesKey_, buyer}); }
    /// Writes stock and sale at once, unless a greater token was here before. @return whether both were written
    [[nodiscard]] bool sellWith(redislock::FencingToken token, long long left, const std::string& buyer)
    {
        constexpr std::string_view script = R"(
            if tonumber(ARGV[1]) < tonumber(redis.call('get', KEYS[3]) or 0) then return 0 end
            redis.call('set', KEYS[3], ARGV[1], 'ex', ARGV[4])
            redis.call('set', KEYS[1], ARGV[2], 'ex', ARGV[4], 'xx')
            redis.call('rpushx', KEYS[2], ARGV[3])
            return 1)";
        const auto number = std::to_string(static_cast<std::uint64_t>(token));
        return command({"EVAL", script, "3", stockKey_, salesKey_, tokenKey_, number, std::to_string(left), buyer,
                        lifetime})
                   ->integer == 1;
    }
    /// How many units were sold; the first entry of the list is not a sale.
    [[nodiscard]] long long sold() { return command({"LLEN", salesKey_})->integer - 1; }

private:
    struct Free {
        void operator()(redisContext* context) const noexcept { redisFree(context); }
        void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
    };

public:
    using Reply = std::unique_ptr<redisReply, Free>;

    /// Any other command. @throws std::runtime_error, with a sentence, if Redis refuses it or does not answer.
    Reply command(std::initializer_list<std::string_view> words)
    {
        std::array<const char*, 12> begins{};
        std::array<std::size_t, 12> sizes{};
        int count = 0;
        for (const auto word : words) {
            begins.at(static_cast<std::size_t>(count)) = word.data();
            sizes.at(static_cast<std::size_t>(count++)) = word.size();
        }
        void* answer = redisCommandArgv(connection_.get(), count, begins.data(), sizes.data());
        Reply reply(static_cast<redisReply*>(answer));
        if (!reply) {
            throw std::runtime_error(fmt::format("Redis does not answer {}: {}", *words.begin(), connection_->errstr));
        }
        if (reply->type == REDIS_REPLY_ERROR) {
            throw std::runtime_error(fmt::format("Redis refuses {}: {}", *words.begin(), reply->str));
        }
        return reply;
    }

private:
    using Connection = std::unique_ptr<redisContext, Free>;

    static constexpr std::string_view lifetime = "3600"; // seconds

    static Connection connect(const redislock::Config& server)
    {
        constexpr timeval patience{3, 0};
        const auto& at = server.endpoint;
        Connection connection(at.unixSocket.empty() ? redisConnectWithTimeout(at.host.c_str(), at.port, patience)
                                                    : redisConnectUnixWithTimeout(at.unixSocket.c_str(), patience));
        if (!connection || connection->err != 0) {
            throw std::runtime_error(fmt::format("no Redis server can be reached at {}: {}", at.str(),
                                                 connection ? connection->errstr : "out of memory"));
        }
        return connection;
    }

    std::string stockKey_;
    std::string salesKey_;
    std::string tokenKey_; ///< the greatest token of all sales
    std::string lockName_;
    Connection connection_;
};

/// Opens a shop; the destructor closes it.
class OpenShop {
public:
    OpenShop(Shop& shop, long long units) : shop_(shop) { shop.open(units); }
    OpenShop(const OpenShop&) = delete;
    OpenShop& operator=(const OpenShop&) = delete;
    ~OpenShop()
    {
        try {
            shop_.close();
        } catch (const std::exception&) {
            // The server is gone; if it comes back with its data, the keys expire.
        }
    }

private:
    Shop& shop_;
};

} // namespace example
