/// @file
/// Which mutex guards what, in words that Clang checks (-Wthread-safety) and other compilers ignore.
#pragma once

#if defined(__clang__)
#define REDISLOCK_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define REDISLOCK_THREAD_SAFETY(attribute)
#endif

/// A member that is read and written under that mutex only.
#define REDISLOCK_GUARDED_BY(mutex) REDISLOCK_THREAD_SAFETY(guarded_by(mutex))
/// A function that is called with that mutex locked.
#define REDISLOCK_REQUIRES(mutex) REDISLOCK_THREAD_SAFETY(requires_capability(mutex))
#define REDISLOCK_ACQUIRES(...) REDISLOCK_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define REDISLOCK_RELEASES(...) REDISLOCK_THREAD_SAFETY(release_capability(__VA_ARGS__))
