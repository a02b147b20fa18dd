// What the tool reads about processes, of which some end meanwhile.
#include "processes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace redislock::tool {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

/// A folder like /proc.
class ProcFolder {
public:
    /// @param status what it says about this process
    explicit ProcFolder(const std::string& status)
    {
        std::filesystem::create_directories(path_ / "self");
        std::ofstream(path_ / "self" / "status") << status;
    }
    ProcFolder(const ProcFolder&) = delete;
    ProcFolder& operator=(const ProcFolder&) = delete;
    ~ProcFolder() { std::filesystem::remove_all(path_); }

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_ =
        std::filesystem::temp_directory_path() / ("redislock_proc_" + std::to_string(::getpid()));
};

std::string ownStatus()
{
    return "Name:\ttest\nPid:\t" + std::to_string(::getpid()) + "\n";
}

TEST(Processes, OneThatEndsWhileItIsReadHasNoParent)
{
    const ProcFolder proc(ownStatus());
    std::filesystem::create_directories(proc.path() / "7" / "stat"); // opens, but cannot be read: it ended
    std::filesystem::create_directories(proc.path() / "8");          // ended before it was opened
    std::filesystem::create_directories(proc.path() / "9");
    std::filesystem::create_directories(proc.path() / "10");
    std::ofstream(proc.path() / "9" / "stat") << "9 (a) b\n) S 7 9 9 0 -1\n";
    std::ofstream(proc.path() / "10" / "stat") << "10 (no main thread) Z 9 10 10 0 -1\n";
    const Processes processes(proc.path());
    EXPECT_THAT(processes.parents(), ElementsAre(Pair(7, 0), Pair(8, 0), Pair(9, 7), Pair(10, 9)));
    std::filesystem::remove_all(proc.path());
    EXPECT_TRUE(processes.parents().empty());
}

TEST(Processes, ThisOneHasItsParent)
{
    EXPECT_THAT(Processes().parents(), Contains(Pair(::getpid(), ::getppid())));
}

TEST(Processes, ThoseOfAnotherNamespaceAreRefused)
{
    const auto self = std::to_string(::getpid());
    EXPECT_NO_THROW(Processes(ProcFolder(ownStatus() + "NSpid:\t" + self + "\n").path()));
    EXPECT_THROW(Processes(ProcFolder(ownStatus() + "NSpid:\t" + self + "\t" + self + "\n").path()), std::runtime_error)
        << "by chance the same number";
    EXPECT_THROW(Processes(ProcFolder("Pid:\t" + std::to_string(::getppid()) + "\n").path()), std::runtime_error);
    EXPECT_THROW(Processes("/nothing"), std::runtime_error);
}

} // namespace
} // namespace redislock::tool
