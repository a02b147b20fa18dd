// What the tool reads about processes, of which some end meanwhile.
#include "processes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace redislock::tool {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Processes, OneThatEndsWhileItIsReadIsLeftOut)
{
    auto folder = std::filesystem::temp_directory_path() / ("redislock_proc_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / "7" / "stat"); // opens, but cannot be read: as of a process that ended
    std::filesystem::create_directories(folder / "8");          // ended before it was opened
    std::filesystem::create_directories(folder / "9");
    std::filesystem::create_directories(folder / "10");
    std::filesystem::create_directories(folder / "self");
    std::ofstream(folder / "9" / "stat") << "9 (a) b\n) S 7 9 9 0 -1\n";
    std::ofstream(folder / "10" / "stat") << "10 (dead) Z 7 10 10 0 -1\n";
    EXPECT_THAT(parentsIn(folder), ElementsAre(Pair(9, 7)));
    std::filesystem::remove_all(folder);
    EXPECT_TRUE(parentsIn(folder).empty());
}

TEST(Processes, ThisOneHasItsParent)
{
    EXPECT_THAT(parentsIn("/proc"), Contains(Pair(::getpid(), ::getppid())));
}

} // namespace
} // namespace redislock::tool
