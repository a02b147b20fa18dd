/// @file
/// Hash slots: how the keys of a cluster are spread over its nodes.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redislock::detail {

using Slot = std::uint16_t;
inline constexpr std::size_t slotCount = 16384;
using SlotSet = std::bitset<slotCount>;

/// Of a request that any node may answer.
inline constexpr Slot noSlot = 0xffff;

/// The CRC16 of XMODEM (polynomial 0x1021), for each value of a byte.
inline constexpr auto crc16Table = [] {
    std::array<std::uint16_t, 256> table{};
    for (unsigned byte = 0; byte < table.size(); ++byte) {
        unsigned crc = byte << 8U;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
        }
        table[byte] = static_cast<std::uint16_t>(crc);
    }
    return table;
}();

/// The slot of a key or of a sharded channel: that of what stands between the first `{` and the next `}`, if that is
/// not empty, else of the whole (Redis Cluster specification, "Hash tags").
constexpr Slot slotOf(std::string_view key) noexcept
{
    const auto open = key.find('{');
    const auto close = open == std::string_view::npos ? open : key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
        key = key.substr(open + 1, close - open - 1);
    }
    unsigned crc = 0;
    for (const char c : key) {
        crc = ((crc << 8U) ^ crc16Table[((crc >> 8U) ^ static_cast<unsigned char>(c)) & 0xffU]) & 0xffffU;
    }
    return static_cast<Slot>(crc % slotCount);
}
static_assert(slotOf("123456789") == 0x31c3);

} // namespace redislock::detail
