/// @file
/// What every other header needs: Linux and C++20. Without them there is one clear error.
#pragma once

#if !defined(__linux__)
#error "redislock is for Linux only"
#elif !defined(__cplusplus) || __cplusplus < 202002L
#error "redislock needs C++20 or newer: compile with -std=c++20, or link the CMake target redislock::redislock"
#else
/// Defined where the library can be used.
#define REDISLOCK_REQUIREMENTS_MET 1
#endif
