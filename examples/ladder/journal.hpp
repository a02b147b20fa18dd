/// @file
/// What the buyers did, and when: kept in memory that survives a killed process.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <system_error>
#include <vector>

#include <cerrno>
#include <sys/mman.h>

namespace ladder {

using Time = std::chrono::microseconds; ///< since the sale began

enum class Kind : std::uint32_t {
    nothing, ///< an entry whose writer died before it was finished
    holds,   ///< from now on the buyer believes that it alone sells
    ends,    ///< from now on the buyer no longer believes that
    sold,
    refused,         ///< its sale was not written, because a buyer with a greater token had sold
    deletesAnothers, ///< it deleted a lock that was not its own
    slow,            ///< its work takes longer than usual
    killed,
    stopped,
    resumed,
};

struct Entry {
    Time at{};
    int buyer = 0;
    Kind kind = Kind::nothing;
};

/// Shared by the processes that are forked after the journal was made. Thread-safe; a full journal accepts no more
/// entries.
class Journal {
public:
    Journal()
    {
        void* pages = ::mmap(nullptr, sizeof(Pages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) {
            throw std::system_error(errno, std::generic_category(), "no shared memory");
        }
        pages_ = new (pages) Pages;
    }
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;
    ~Journal() { ::munmap(pages_, sizeof(Pages)); }

    void note(int buyer, Kind kind) noexcept
    {
        const auto index = pages_->count.fetch_add(1);
        if (index < capacity) {
            auto& entry = pages_->entries[index];
            entry.at = now().count();
            entry.buyer = buyer;
            entry.kind.store(kind, std::memory_order_release);
        }
    }

    /// In the order of time.
    [[nodiscard]] std::vector<Entry> entries() const
    {
        std::vector<Entry> all;
        const std::size_t count = std::min<std::size_t>(pages_->count, capacity);
        for (std::size_t i = 0; i < count; ++i) {
            const auto& entry = pages_->entries[i];
            if (const auto kind = entry.kind.load(std::memory_order_acquire); kind != Kind::nothing) {
                all.push_back({Time(entry.at), entry.buyer, kind});
            }
        }
        std::ranges::stable_sort(all, {}, &Entry::at);
        return all;
    }
    [[nodiscard]] Time now() const noexcept { return std::chrono::duration_cast<Time>(Clock::now() - start_); }

private:
    using Clock = std::chrono::steady_clock; // which all processes of the machine share
    static constexpr std::size_t capacity = 20'000;

    struct Shared {
        std::int64_t at = 0;
        int buyer = 0;
        std::atomic<Kind> kind{Kind::nothing};
    };
    struct Pages {
        std::atomic<std::uint32_t> count{0};
        Shared entries[capacity];
    };

    Pages* pages_;
    const Clock::time_point start_ = Clock::now();
};

} // namespace ladder
