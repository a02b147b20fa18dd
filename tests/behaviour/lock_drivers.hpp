/// @file
/// The forms in which a kind of lock can be used, and which suites run over which of them.
#pragma once

#include "behaviour/asynchronous_driver.hpp"
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_driver.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace redislock::test {

namespace drivers {

template <class... Drivers>
struct DriverList {
    using Types = ::testing::Types<Drivers...>;

    template <class D>
    using With = DriverList<Drivers..., D>;
};

template <class List, class Needed, class... Drivers>
struct Filter {
    using Kept = List;
};

template <class List, class Needed, class D, class... Rest>
struct Filter<List, Needed, D, Rest...> {
    using Next = std::conditional_t<Needed::template metBy<D>, typename List::template With<D>, List>;
    using Kept = typename Filter<Next, Needed, Rest...>::Kept;
};

template <Feature... needed>
struct Needs {
    template <class D>
    static constexpr bool metBy = (supports<D>(needed) && ...);
};

} // namespace drivers

/// The forms of RedisLock, and the kinds that have scripts of their own, that support all of these features. Who adds one adds
/// it here.
template <Feature... needed>
using DriversWith =
    typename drivers::Filter<drivers::DriverList<>, drivers::Needs<needed...>, BlockingThrowing, BlockingCodes,
                             Asynchronous, Throwing<FairLocks>, Throwing<WriteLocks>, Throwing<ReadLocks>>::Kept::Types;

/// Names of the drivers in the names of the tests.
struct DriverNames {
    template <class D>
    static std::string GetName(int /*index*/)
    {
        return std::string(D::name);
    }
};

} // namespace redislock::test
