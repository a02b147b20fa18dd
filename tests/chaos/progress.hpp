/// @file
/// How the processes of a chaos run tell each other their progress: a file that all of them map.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace redislock::test::chaos {

/// A worker process' part.
struct Slot {
    std::atomic<std::uint64_t> operations{0};     ///< lock and unlock calls that returned
    std::atomic<std::int64_t> recovered{0};       ///< when the call for the latest lock that was got and freed began
    std::atomic<std::int64_t> groupsRecovered{0}; ///< the same for groups
    std::atomic<int> holding{0};                  ///< threads that have a lock
    std::atomic<int> waiting{0};                  ///< threads in a lock call
    std::atomic<bool> quiet{false};               ///< all threads have ended
};

/// The parts of all processes, and the director's orders.
struct Board {
    static constexpr std::size_t most = 16;

    std::atomic<bool> ending{false}; ///< workers end their work, but stay
    std::atomic<bool> leave{false};  ///< and then leave
    std::atomic<int> latch{0};       ///< the first latch that may be closed
    Slot slots[most];
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "shared between processes");

/// The board, mapped. The director makes it, workers open it.
class Progress {
public:
    explicit Progress(const std::filesystem::path& file)
    {
        const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        const bool isNew = fd >= 0 && ::lseek(fd, 0, SEEK_END) == 0;
        const bool fits = fd >= 0 && ::ftruncate(fd, sizeof(Board)) == 0;
        void* memory = fits ? ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
        const int error = errno;
        ::close(fd);
        if (memory == MAP_FAILED) {
            throw std::system_error(error, std::generic_category(), file.string());
        }
        board_ = isNew ? new (memory) Board : std::launder(static_cast<Board*>(memory));
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { ::munmap(board_, sizeof(Board)); }

    Board& operator*() const noexcept { return *board_; }
    Board* operator->() const noexcept { return board_; }

private:
    Board* board_;
};

} // namespace redislock::test::chaos
