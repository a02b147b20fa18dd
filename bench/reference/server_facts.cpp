#include "reference/server_facts.hpp"

#include "measurement.hpp"

#include <cstdlib>
#include <set>

namespace redislock::bench {

double infoNumber(RawConnection& connection, std::string_view section, std::string_view field)
{
    const auto reply = connection.command({"INFO", section});
    expect(reply->type == REDIS_REPLY_STRING, "the reply to INFO");
    const std::string_view text(reply->str, static_cast<std::size_t>(reply->len));
    const auto at = text.find(field);
    return at == std::string_view::npos ? 0 : std::strtod(text.data() + at + field.size() + 1, nullptr);
}

double requestsSoFar(RawConnection& connection)
{
    static const std::set<std::string_view> sentByTheLibrary{"eval",        "evalsha", "script|load", "subscribe",
                                                             "unsubscribe", "ping",    "wait"};
    const auto reply = connection.command({"INFO", "commandstats"});
    expect(reply->type == REDIS_REPLY_STRING, "the reply to INFO");
    const std::string_view text(reply->str, static_cast<std::size_t>(reply->len));
    constexpr std::string_view begin = "cmdstat_";
    constexpr std::string_view calls = ":calls=";
    double sum = 0;
    for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
        const auto nameBegin = at + begin.size();
        const auto nameEnd = text.find(calls, nameBegin);
        expect(nameEnd != std::string_view::npos, "the reply to INFO");
        if (sentByTheLibrary.contains(text.substr(nameBegin, nameEnd - nameBegin))) {
            sum += std::strtod(text.data() + nameEnd + calls.size(), nullptr);
        }
    }
    return sum;
}

} // namespace redislock::bench
