#include "interop/load/turns.hpp"

#include <algorithm>

namespace redislock::test {

std::vector<std::pair<Turn, Turn>> overlaps(std::vector<Turn> turns, std::size_t most)
{
    std::erase_if(turns, [](const Turn& turn) { return turn.lost; });
    std::ranges::sort(turns, {}, &Turn::in);
    std::vector<std::pair<Turn, Turn>> found;
    std::vector<Turn> inside;
    for (const auto& turn : turns) {
        std::erase_if(inside, [&](const Turn& other) { return other.out <= turn.in; });
        const auto other = std::ranges::find_if(inside, [&](const Turn& each) { return !each.reads || !turn.reads; });
        if (inside.size() >= most && other != inside.end()) {
            found.emplace_back(*other, turn);
        }
        inside.push_back(turn);
    }
    return found;
}

} // namespace redislock::test
