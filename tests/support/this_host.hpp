/// @file
/// The name of this machine.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace redislock::test {

inline std::string thisHost()
{
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    return host.data();
}

} // namespace redislock::test
