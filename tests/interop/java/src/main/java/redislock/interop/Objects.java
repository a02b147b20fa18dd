package redislock.interop;

import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

import org.redisson.api.RBucket;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * The objects of a client and what can be done with them. Times are in milliseconds; a lease of -1 is the watchdog's.
 *
 * <pre>
 * lock, spinLock, fairLock, readLock, writeLock, fencedLock, nonReentrant, multiLock and redLock (of names a,b,c):
 *     lock [lease]    tryLock [wait [lease]]    unlock    forceUnlock    isLocked    isHeld    holdCount    ttl    owner
 *     count key     until the key key:end exists: counts a key up under the lock, each time by GET, then SET; its count
 * fencedLock:
 *     token    lockAndGetToken    tryLockAndGetToken wait lease
 * semaphore:
 *     trySetPermits n    acquire n    tryAcquire n wait    release n    available    drain    add n    count key
 * permitExpirableSemaphore, whose acquire gives the id of a permit:
 *     trySetPermits n    acquire [lease]    tryAcquire wait lease    release id    tryRelease id    available    add n
 *     updateLease id lease    count key
 * countDownLatch:
 *     trySetCount n    countDown    getCount    await [wait]
 * </pre>
 */
final class Objects {
    private final RedissonClient client;
    private final Map<String, Function<String, RLock>> lockKinds;
    private final Map<String, RLock> locks = new ConcurrentHashMap<>();

    Objects(RedissonClient client) {
        this.client = client;
        this.lockKinds = Map.of(
                "lock", client::getLock,
                "spinLock", client::getSpinLock,
                "fairLock", client::getFairLock,
                "readLock", name -> client.getReadWriteLock(name).readLock(),
                "writeLock", name -> client.getReadWriteLock(name).writeLock(),
                "fencedLock", name -> newerLock("getFencedLock", name),
                "nonReentrant", name -> newerLock("getNonReentrantLock", name),
                "multiLock", names -> client.getMultiLock(members(names)),
                "redLock", this::redLock);
    }

    /** @return false, a value to tell, or true or null when there is nothing to tell. */
    Object run(String kind, String operation, String name, List<String> arguments) throws Exception {
        switch (kind) {
            case "semaphore":
                return onSemaphore(client.getSemaphore(name), operation, new Arguments(arguments));
            case "permitExpirableSemaphore":
                return onPermits(client.getPermitExpirableSemaphore(name), operation, new Arguments(arguments));
            case "countDownLatch":
                return onLatch(client.getCountDownLatch(name), operation, new Arguments(arguments));
            default:
                // One object for each name, as in a program: a lock remembers its last lease.
                RLock lock = locks.computeIfAbsent(kind + " " + name, unused -> lockKind(kind).apply(name));
                return onLock(lock, operation, new Arguments(arguments));
        }
    }

    // --- Locks ---------------------------------------------------------------------------------------------------------

    private Function<String, RLock> lockKind(String kind) {
        Function<String, RLock> known = lockKinds.get(kind);
        if (known == null) {
            throw new IllegalArgumentException("no kind " + kind);
        }
        return known;
    }

    private RLock[] members(String names) {
        return Arrays.stream(names.split(",")).map(client::getLock).toArray(RLock[]::new);
    }

    @SuppressWarnings("deprecation") // still there, still used
    private RLock redLock(String names) {
        return client.getRedLock(members(names));
    }

    /** A kind that old versions lack. */
    private RLock newerLock(String getter, String name) {
        return (RLock) call(client, RedissonClient.class, getter, new Class<?>[] {String.class}, name);
    }

    private static Object call(Object object, Class<?> type, String method, Class<?>[] types, Object... arguments) {
        try {
            return type.getMethod(method, types).invoke(object, arguments);
        } catch (NoSuchMethodException | IllegalAccessException e) {
            throw new UnsupportedOperationException("this version of Redisson has no " + method, e);
        } catch (InvocationTargetException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e.getCause());
        }
    }

    private Object onLock(RLock lock, String operation, Arguments arguments) throws Exception {
        switch (operation) {
            case "lock":
                acquire(lock, arguments);
                return null;
            case "tryLock":
                return tryLock(lock, arguments);
            case "unlock":
                lock.unlock();
                return null;
            case "forceUnlock":
                return lock.forceUnlock();
            case "isLocked":
                return lock.isLocked();
            case "isHeld":
                return lock.isHeldByCurrentThread();
            case "holdCount":
                return lock.getHoldCount();
            case "ttl":
                return lock.remainTimeToLive();
            case "owner":
                return client.getId() + ":" + Thread.currentThread().getId();
            case "count":
                return count(arguments, lock::lock, lock::unlock);
            default:
                return onFencedLock(lock, operation, arguments);
        }
    }

    private static void acquire(RLock lock, Arguments arguments) {
        if (arguments.isEmpty()) {
            lock.lock();
        } else {
            lock.lock(arguments.number(0), TimeUnit.MILLISECONDS);
        }
    }

    private static boolean tryLock(RLock lock, Arguments arguments) throws InterruptedException {
        if (arguments.isEmpty()) {
            return lock.tryLock();
        }
        long lease = arguments.size() == 1 ? -1 : arguments.number(1);
        return lock.tryLock(arguments.number(0), lease, TimeUnit.MILLISECONDS);
    }

    private static Object onFencedLock(RLock lock, String operation, Arguments arguments) {
        Class<?> type = Arrays.stream(lock.getClass().getInterfaces())
                .filter(candidate -> candidate.getSimpleName().equals("RFencedLock"))
                .findFirst()
                .orElseThrow(() -> unknown(operation));
        switch (operation) {
            case "token":
                return call(lock, type, "getToken", new Class<?>[] {});
            case "lockAndGetToken":
                return call(lock, type, "lockAndGetToken", new Class<?>[] {});
            case "tryLockAndGetToken":
                Object token = call(lock, type, "tryLockAndGetToken",
                        new Class<?>[] {long.class, long.class, TimeUnit.class}, arguments.number(0),
                        arguments.number(1), TimeUnit.MILLISECONDS);
                return token == null ? false : token;
            default:
                throw unknown(operation);
        }
    }

    // --- Semaphores and the latch --------------------------------------------------------------------------------------

    private Object onSemaphore(RSemaphore semaphore, String operation, Arguments arguments) throws Exception {
        switch (operation) {
            case "trySetPermits":
                return semaphore.trySetPermits(arguments.count(0));
            case "acquire":
                semaphore.acquire(arguments.count(0));
                return null;
            case "tryAcquire":
                return semaphore.tryAcquire(arguments.count(0), arguments.number(1), TimeUnit.MILLISECONDS);
            case "release":
                semaphore.release(arguments.count(0));
                return null;
            case "available":
                return semaphore.availablePermits();
            case "drain":
                return semaphore.drainPermits();
            case "add":
                semaphore.addPermits(arguments.count(0));
                return null;
            case "count":
                return count(arguments, semaphore::acquire, semaphore::release);
            default:
                throw unknown(operation);
        }
    }

    private Object onPermits(RPermitExpirableSemaphore semaphore, String operation, Arguments arguments)
            throws Exception {
        switch (operation) {
            case "trySetPermits":
                return semaphore.trySetPermits(arguments.count(0));
            case "acquire":
                return arguments.isEmpty() ? semaphore.acquire()
                        : semaphore.acquire(arguments.number(0), TimeUnit.MILLISECONDS);
            case "tryAcquire":
                String id = semaphore.tryAcquire(arguments.number(0), arguments.number(1), TimeUnit.MILLISECONDS);
                return id == null ? false : id;
            case "release":
                semaphore.release(arguments.word(0));
                return null;
            case "tryRelease":
                return semaphore.tryRelease(arguments.word(0));
            case "available":
                return semaphore.availablePermits();
            case "add":
                semaphore.addPermits(arguments.count(0));
                return null;
            case "updateLease":
                return semaphore.updateLeaseTime(arguments.word(0), arguments.number(1), TimeUnit.MILLISECONDS);
            case "count":
                String[] permit = new String[1];
                return count(arguments, () -> permit[0] = semaphore.acquire(), () -> semaphore.release(permit[0]));
            default:
                throw unknown(operation);
        }
    }

    private static Object onLatch(RCountDownLatch latch, String operation, Arguments arguments) throws Exception {
        switch (operation) {
            case "trySetCount":
                return latch.trySetCount(arguments.number(0));
            case "countDown":
                latch.countDown();
                return null;
            case "getCount":
                return latch.getCount();
            case "await":
                if (arguments.isEmpty()) {
                    latch.await();
                    return null;
                }
                return latch.await(arguments.number(0), TimeUnit.MILLISECONDS);
            default:
                throw unknown(operation);
        }
    }

    // --- What they share -----------------------------------------------------------------------------------------------

    private interface Step {
        void run() throws Exception;
    }

    private Object count(Arguments arguments, Step enter, Step leave) throws Exception {
        RBucket<String> counter = client.getBucket(arguments.word(0), StringCodec.INSTANCE);
        RBucket<String> end = client.getBucket(arguments.word(0) + ":end", StringCodec.INSTANCE);
        long counted = 0;
        while (!end.isExists()) {
            enter.run();
            String before = counter.get();
            counter.set(Long.toString((before == null ? 0 : Long.parseLong(before)) + 1));
            leave.run();
            ++counted;
        }
        return counted;
    }

    private static IllegalArgumentException unknown(String operation) {
        return new IllegalArgumentException("no operation " + operation);
    }

    /** The words of a command after the object's name. */
    private static final class Arguments {
        private final List<String> words;

        Arguments(List<String> words) {
            this.words = words;
        }

        boolean isEmpty() {
            return words.isEmpty();
        }

        int size() {
            return words.size();
        }

        String word(int index) {
            return words.get(index);
        }

        long number(int index) {
            return Long.parseLong(words.get(index));
        }

        int count(int index) {
            return Integer.parseInt(words.get(index));
        }
    }
}
