/// @file
/// Forward declarations of the public types.
#pragma once

namespace redislock {

class Client;
class FairLock;
class FencedLock;
class CountDownLatch;
class Lease;
class Lock;
class LockError;
class LockGuard;
class NonReentrantLock;
class Observer;
class ReadLock;
class ReadWriteLock;
class Permit;
class PermitExpirableSemaphore;
class RedisLock;
class RetryPolicy;
class Semaphore;
class SpinLock;
class Wait;
class WriteLock;
struct BootClock;
struct Config;
struct Endpoint;
struct LockEvent;
enum class Errc;
enum class Unlocked;

namespace detail {
class Engine;
struct Acquired;
class NamedCounter;
struct Hold;
struct NamedLock;
struct PermitHold;
} // namespace detail

} // namespace redislock
