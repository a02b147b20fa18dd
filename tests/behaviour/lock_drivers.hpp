/// @file
/// The drivers as the parameters of suites, and which suites run over which drivers.
#pragma once

#include "behaviour/any_lock.hpp"
#include "behaviour/lock_driver.hpp"
#include "redislock/client.hpp"
#include "redislock/lock_guard.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// A driver whose type is known only at run time: its functions that need no lock.
struct Driver {
    std::string_view name;
    bool (*supports)(Feature feature);
    Result<std::optional<AnyLock>> (*make)(const Client& client, std::string lockName);
    Result<Unlocked> (*release)(LockGuard& guard);
    bool hasModes;          ///< its locks belong to a ReadWriteLock
    std::string_view freed; ///< the message of an unlock: that one of the waiters may come in, or all

    friend std::ostream& operator<<(std::ostream& out, const Driver& driver) { return out << driver.name; }
};

/// The drivers that support all of these features.
std::vector<Driver> allWith(std::initializer_list<Feature> needed);

/// The same as the parameters of a suite.
inline auto driversWith(std::initializer_list<Feature> needed)
{
    return ::testing::ValuesIn(allWith(needed));
}

/// The name of a driver in the names of the tests.
inline std::string driverName(const ::testing::TestParamInfo<Driver>& driver)
{
    return std::string(driver.param.name);
}

} // namespace redislock::test
