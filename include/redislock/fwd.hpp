/// @file
/// Forward declarations of the public types.
#pragma once

namespace redislock {

class Client;
class Lease;
class LockError;
class LockGuard;
class Observer;
class RedisLock;
class Wait;
struct BootClock;
struct Config;
struct Endpoint;
struct LockEvent;
enum class Errc;
enum class Unlocked;

namespace detail {
class Engine;
struct Hold;
struct NamedLock;
} // namespace detail

} // namespace redislock
