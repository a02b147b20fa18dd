#include "reference/server_facts.hpp"

#include "measurement.hpp"

#include <cstdlib>

namespace redislock::bench {

double infoNumber(RawConnection& connection, std::string_view section, std::string_view field)
{
    const auto reply = connection.command({"INFO", section});
    expect(reply->type == REDIS_REPLY_STRING, "the reply to INFO");
    const std::string_view text(reply->str, static_cast<std::size_t>(reply->len));
    const auto at = text.find(field);
    return at == std::string_view::npos ? 0 : std::strtod(text.data() + at + field.size() + 1, nullptr);
}

} // namespace redislock::bench
