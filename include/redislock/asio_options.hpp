/// @file
/// A program does not link if it compiles Asio with other options than the library: their objects differ in layout.
#pragma once

#include "redislock/export.hpp"

#include <boost/asio/recycling_allocator.hpp>

#include <cstdint>
#include <string_view>

#define REDISLOCK_QUOTED(text) #text
#define REDISLOCK_TEXT(macro) REDISLOCK_QUOTED(macro)
#define REDISLOCK_HAS(macro) (std::string_view(REDISLOCK_TEXT(BOOST_ASIO_##macro)) != "BOOST_ASIO_" #macro)

namespace redislock::detail {

/// What decides about the layout of objects of Asio and of the standard library, and about the code that works on them:
/// a bit for each option. None depends on what was included before.
constexpr std::uint32_t asioOptions() noexcept
{
    constexpr bool isCustom = REDISLOCK_HAS(CUSTOM_HANDLER_TRACKING);
    std::uint32_t options = BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE;
    for (const bool option : {isCustom, isCustom || REDISLOCK_HAS(ENABLE_HANDLER_TRACKING), REDISLOCK_HAS(NO_TYPEID),
                              REDISLOCK_HAS(HAS_EPOLL), REDISLOCK_HAS(HAS_EVENTFD), REDISLOCK_HAS(HAS_TIMERFD),
                              REDISLOCK_HAS(HAS_IO_URING), REDISLOCK_HAS(HAS_IO_URING_AS_DEFAULT),
                              REDISLOCK_HAS(HAS_THREADS), REDISLOCK_HAS(HAS_THREAD_KEYWORD_EXTENSION),
                              REDISLOCK_HAS(HAS_STD_ALIGNED_ALLOC), REDISLOCK_HAS(DISABLE_SMALL_BLOCK_RECYCLING),
                              REDISLOCK_HAS(DISABLE_BUFFER_DEBUGGING), REDISLOCK_HAS(USE_TS_EXECUTOR_AS_DEFAULT),
                              std::string_view(REDISLOCK_TEXT(_GLIBCXX_DEBUG)) != "_GLIBCXX_DEBUG"}) {
        options = options * 2 + (option ? 1 : 0);
    }
    return options;
}

/// Defined in the library, for the options that it was compiled with.
template <std::uint32_t options>
void programAndLibraryHaveTheSameAsioOptions() noexcept;
template <>
REDISLOCK_EXPORT void programAndLibraryHaveTheSameAsioOptions<asioOptions()>() noexcept;

/// Makes the linker look for it.
[[gnu::used, gnu::retain]] static void (*const linkedAsioOptions)() noexcept =
    &programAndLibraryHaveTheSameAsioOptions<asioOptions()>;

} // namespace redislock::detail

#undef REDISLOCK_HAS
#undef REDISLOCK_TEXT
#undef REDISLOCK_QUOTED
