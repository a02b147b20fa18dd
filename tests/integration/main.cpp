// The tests, or (for tests that need a second process) a process that holds a lock: see holder_process.hpp.
#include "integration/holder_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

int main(int argc, char** argv)
{
    if (argc > 1 && argv[1] == redislock::test::HolderProcess::role) {
        return redislock::test::runHolder({argv + 2, argv + argc});
    }
    ::testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
}
