/// @file
/// Which addresses of a name are tried last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {

/// The addresses whose server took no writes, the latest at the end. Not thread-safe, no I/O.
class DemotedAddresses {
public:
    void note(std::string address)
    {
        std::erase(addresses_, address);
        if (addresses_.size() == most) {
            addresses_.erase(addresses_.begin());
        }
        if (!address.empty()) {
            addresses_.push_back(std::move(address));
        }
    }

    [[nodiscard]] bool contains(const std::string& address) const
    {
        return std::find(addresses_.begin(), addresses_.end(), address) != addresses_.end();
    }

    /// Puts the demoted ones of these addresses behind the others, the latest at the end: so each has its turn. @param
    /// textOf gives the text of an address, as note() was given it
    template <class Address, class TextOf>
    void putLast(std::vector<Address>& all, TextOf textOf) const
    {
        const auto age = [&](const Address& address) {
            const auto found = std::find(addresses_.begin(), addresses_.end(), textOf(address));
            return found == addresses_.end() ? 0 : 1 + (found - addresses_.begin());
        };
        std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return age(a) < age(b); });
    }

private:
    static constexpr std::size_t most = 64;
    std::vector<std::string> addresses_;
};

} // namespace redislock::detail
