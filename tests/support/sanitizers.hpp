/// @file
/// Which sanitizer this code is compiled with: GCC and Clang say so in different ways.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REDISLOCK_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define REDISLOCK_THREAD_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define REDISLOCK_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__)
#define REDISLOCK_THREAD_SANITIZER
#endif
