// The tests, or (for tests that need other processes) a process that holds a lock or has many waiters for one: see
// holder_process.hpp, crowd_process.hpp, asker_process.hpp, ending_process.hpp.
#include "integration/asker_process.hpp"
#include "integration/crowd_process.hpp"
#include "integration/ending_process.hpp"
#include "integration/holder_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

int main(int argc, char** argv)
{
    const std::string_view role = argc > 1 ? argv[1] : "";
    if (role == redislock::test::HolderProcess::role) {
        return redislock::test::runHolder({argv + 2, argv + argc});
    }
    if (role == redislock::test::CrowdProcess::role) {
        return redislock::test::runCrowd({argv + 2, argv + argc});
    }
    if (role == redislock::test::AskerProcess::role) {
        return redislock::test::runAsker({argv + 2, argv + argc});
    }
    if (role == redislock::test::EndingProcess::role) {
        return redislock::test::runEnding({argv + 2, argv + argc});
    }
    ::testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
}
