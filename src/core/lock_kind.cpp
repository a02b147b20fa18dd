#include "core/lock_kind.hpp"

#include "wire/command.hpp"
#include "wire/key_schema.hpp"

namespace redislock::detail {

namespace {

using namespace scripts;

/// The traits of a plain lock, and of what differs little from it.
constexpr KindTraits plain(LockKind which)
{
    KindTraits kind{};
    kind.kind = which;
    kind.lock = {&redisLockLock};
    kind.unlock = {&redisLockUnlock};
    kind.renew = {&redisLockRenew};
    kind.pttl = {&redisLockPttl};
    kind.holder = {&redisLockHolder};
    kind.forceUnlock = {&redisLockForceUnlock};
    kind.channelPrefix = lockChannelPrefix;
    kind.inherits = true;
    return kind;
}

constexpr KindTraits nonReentrant()
{
    KindTraits kind = plain(LockKind::nonReentrantLock);
    kind.isReentrant = false;
    return kind;
}

constexpr KindTraits spin()
{
    KindTraits kind = plain(LockKind::spinLock);
    kind.channelPrefix = {};
    kind.inherits = false; // without messages, nobody here knows that others wait
    return kind;
}

constexpr KindTraits fenced()
{
    KindTraits kind = plain(LockKind::fencedLock);
    kind.lock = {&fencedLockLock, true};
    kind.tokens = Tokens::given;
    kind.inherits = false; // each hold needs a token of its own
    kind.companions[0] = tokenPrefix;
    kind.companionCount = 1;
    return kind;
}

constexpr KindTraits fair()
{
    KindTraits kind = plain(LockKind::fairLock);
    kind.lock = {&fairLockLock, true};
    kind.unlock = {&fairLockUnlock, true};
    kind.forceUnlock = {&fairLockForceUnlock, true};
    kind.companions[0] = queuePrefix;
    kind.companions[1] = queueTimesPrefix;
    kind.companions[2] = queuePlacesPrefix;
    kind.companionCount = 3;
    kind.lockArguments = 6;
    kind.asking = Asking::queue;
    kind.keepsPlace = true;
    kind.follows = false;
    kind.inherits = false;
    return kind;
}

constexpr KindTraits read()
{
    KindTraits kind{};
    kind.kind = LockKind::readLock;
    kind.lock = {&readLockLock, true};
    kind.unlock = {&readLockUnlock, true};
    kind.renew = {&readLockRenew, true};
    kind.pttl = {&readLockPttl};
    kind.holder = {&readLockHolder};
    kind.forceUnlock = {&readLockForceUnlock};
    kind.channelPrefix = readWriteChannelPrefix;
    kind.companions[0] = inBraces;
    kind.companionCount = 1;
    kind.lockArguments = 4;
    kind.asking = Asking::each;
    kind.sharesTime = true;
    kind.follows = false;
    return kind;
}

constexpr KindTraits write()
{
    KindTraits kind{};
    kind.kind = LockKind::writeLock;
    kind.lock = {&writeLockLock, true};
    kind.unlock = {&writeLockUnlock, true};
    kind.renew = {&redisLockRenew};
    kind.pttl = {&writeLockPttl};
    kind.holder = {&writeLockHolder};
    kind.forceUnlock = {&writeLockForceUnlock};
    kind.channelPrefix = readWriteChannelPrefix;
    kind.holderSuffix = writerSuffix;
    kind.companions[0] = inBraces;
    kind.companionCount = 1;
    kind.lockArguments = 4;
    kind.keepsPlace = true;
    kind.follows = false; // otherwise readers might never get in
    return kind;
}

} // namespace

constinit const KindTraits KindTraits::redisLock = plain(LockKind::redisLock);
constinit const KindTraits KindTraits::nonReentrantLock = nonReentrant();
constinit const KindTraits KindTraits::spinLock = spin();
constinit const KindTraits KindTraits::fencedLock = fenced();
constinit const KindTraits KindTraits::fairLock = fair();
constinit const KindTraits KindTraits::readLock = read();
constinit const KindTraits KindTraits::writeLock = write();

const KindTraits& KindTraits::of(LockKind kind) noexcept
{
    constexpr const KindTraits* kinds[lockKinds] = {&redisLock, &nonReentrantLock, &spinLock, &fencedLock,
                                                    &fairLock,  &readLock,         &writeLock}; // in LockKind's order
    return *kinds[static_cast<std::size_t>(kind)];
}

void appendCompanions(std::string& out, const KindTraits& kind, std::string_view name)
{
    for (std::size_t i = 0; i < kind.companionCount; ++i) {
        const auto prefix = kind.companions[i];
        appendHeader(out, '$', prefixedSize(prefix, name));
        appendPrefixed(out, prefix, name);
        out.append("\r\n", 2);
    }
}

} // namespace redislock::detail
