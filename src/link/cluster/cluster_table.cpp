#include "link/cluster/cluster_table.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace redislock::detail {

namespace {

/// Decimal digits and nothing else, at most @p most.
std::optional<std::uint64_t> digitsIn(std::string_view text, std::uint64_t most) noexcept
{
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool isWhole = error == std::errc() && end == text.data() + text.size();
    return isWhole && number <= most ? std::optional(number) : std::nullopt;
}

bool isNumber(const Reply& reply, std::int64_t most) noexcept
{
    return reply.kind == Reply::Kind::integer && reply.integer >= 0 && reply.integer <= most;
}

/// Address, port, and from Redis 4 on the id, from Redis 7 on other names: `["hostname", "…", "ip", "…"]`.
std::optional<ClusterTable::Node> nodeOf(const Reply& reply)
{
    const auto& parts = reply.elements;
    if (parts.size() < 2 || !isNumber(parts[1], 65535) ||
        (parts[0].kind != Reply::Kind::text && parts[0].kind != Reply::Kind::nil)) {
        return std::nullopt;
    }
    ClusterTable::Node node;
    node.announced.host = parts[0].text == "?" ? std::string() : parts[0].text;
    node.announced.port = static_cast<std::uint16_t>(parts[1].integer);
    node.id = parts.size() > 2 ? parts[2].text : std::string();
    if (parts.size() > 3) {
        const auto& more = parts[3].elements;
        for (std::size_t i = 0; i + 1 < more.size(); i += 2) {
            if (!more[i + 1].text.empty() && more[i + 1].text != "?") {
                node.aliases.push_back(more[i + 1].text);
            }
        }
    }
    return node;
}

} // namespace

std::optional<ClusterTable> clusterTableOf(const Reply& reply)
{
    constexpr std::int64_t lastSlot = slotCount - 1;
    if (reply.kind != Reply::Kind::array) {
        return std::nullopt;
    }
    ClusterTable table;
    for (const Reply& each : reply.elements) {
        const auto& parts = each.elements;
        if (parts.size() < 3 || !isNumber(parts[0], lastSlot) || !isNumber(parts[1], lastSlot)) {
            return std::nullopt;
        }
        for (std::size_t i = 2; i < parts.size(); ++i) {
            auto node = nodeOf(parts[i]);
            if (!node) {
                return std::nullopt;
            }
            const auto known = std::ranges::find_if(table.nodes, [&](const ClusterTable::Node& other) {
                return other.id == node->id && other.announced == node->announced;
            });
            const auto index = static_cast<std::size_t>(known - table.nodes.begin());
            if (known == table.nodes.end()) {
                table.nodes.push_back(*std::move(node));
            }
            if (i == 2) {
                table.ranges.push_back(
                    {static_cast<Slot>(parts[0].integer), static_cast<Slot>(parts[1].integer), index});
            }
        }
    }
    return table;
}

std::optional<Redirection> Redirection::from(std::string_view text) noexcept
{
    Redirection found;
    const auto word = text.substr(0, text.find(' '));
    if (word != "MOVED" && word != "ASK") {
        return std::nullopt;
    }
    found.isOnce = word == "ASK";
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const auto slot = digitsIn(text.substr(0, text.find(' ')), slotCount - 1);
    const auto address = text.substr(std::min(text.find(' '), text.size() - 1) + 1);
    const auto colon = address.rfind(':');
    if (!slot || colon == std::string_view::npos) {
        return std::nullopt;
    }
    const auto port = digitsIn(address.substr(colon + 1), 65535);
    found.slot = static_cast<Slot>(*slot);
    found.host = address.substr(0, colon);
    found.port = static_cast<std::uint16_t>(port.value_or(0));
    return port && *port != 0 ? std::optional(found) : std::nullopt;
}

} // namespace redislock::detail
