#include "simulation/counter_ledger.hpp"

#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <charconv>

namespace redislock::simulation {

std::string processOfRecord(const std::string& record)
{
    const auto end = record.rfind(':');
    const auto begin = record.rfind(':', end - 1) + 1;
    return record.substr(begin, end - begin);
}

std::string processOfPermit(const std::string& id)
{
    return id.substr(0, id.find('_'));
}

std::string permitId(const std::string& process, std::uint64_t number)
{
    return fmt::format("{:_<10}{:06}", process, number);
}

std::string hexOf(const std::string& id)
{
    std::string hex;
    for (const char byte : id) {
        hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return hex;
}

std::optional<std::int64_t> numberIn(const std::string& text) noexcept
{
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

std::int64_t numberAt(const Keyspace& keyspace, const std::string& name, VirtualTime now) noexcept
{
    const auto* key = keyspace.find(name, millisecondOf(now));
    return key == nullptr ? 0 : numberIn(key->fields[0].first).value_or(0);
}

} // namespace redislock::simulation
