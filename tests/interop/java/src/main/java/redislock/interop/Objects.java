package redislock.interop;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.stream.IntStream;

import org.redisson.Redisson;
import org.redisson.RedissonFairLock;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RList;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;
import org.redisson.command.CommandAsyncExecutor;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import org.redisson.config.SingleServerConfig;

/**
 * The objects of a process and their operations. Times are in milliseconds; a lease of -1 is the watchdog's.
 *
 * <pre>
 * lock, spinLock, fairLock, readLock, writeLock, fencedLock, nonReentrant, multiLock and redLock (of names a,b,c@1;
 * b is on the first server, c on the second):
 *     lock [lease]    tryLock [wait [lease]]    unlock    forceUnlock    isLocked    isHeld    holdCount    ttl
 *     count key    look key    crowd key    see {@link Repeat}
 * fencedLock:
 *     token    lockAndGetToken    tryLockAndGetToken wait lease
 *     countTokens key    as count, with the token of each turn at the end of the list key:tokens
 * semaphore:
 *     trySetPermits n    acquire n    tryAcquire n wait    release n    available    drain    add n
 *     count key    crowd key
 * permitExpirableSemaphore, whose acquire gives the id of a permit:
 *     trySetPermits n    acquire [lease]    tryAcquire wait lease    release id    tryRelease id    available    add n
 *     updateLease id lease    count key    crowd key
 * countDownLatch:
 *     trySetCount n    countDown    getCount    await [wait]
 * </pre>
 */
final class Objects {
    private static final String PREFIX = "redislock.prefix";

    private final RedissonClient client; // of the first server
    private final List<String> urls;
    private final long watchdog;
    private final long place;
    private final int patience;
    private final Map<Integer, RedissonClient> clients = new ConcurrentHashMap<>();
    private final Map<String, Function<String, RLock>> lockKinds;
    private final Map<String, RLock> locks = new ConcurrentHashMap<>();

    /**
     * @param place how long a place in a fair queue is kept beyond the time of the wait, in milliseconds
     * @param patience how long a server may take to answer, in milliseconds; then it is not asked again. Servers may go
     *         down later, but all must be up now. 0: Redisson's own time and attempts
     */
    Objects(long watchdog, long place, int patience, List<String> urls) {
        this.watchdog = watchdog;
        this.place = place;
        this.patience = patience;
        this.urls = urls;
        this.client = client(0);
        if (patience > 0) {
            IntStream.range(1, urls.size()).forEach(this::client);
        }
        this.lockKinds = Map.of(
                "lock", client::getLock,
                "spinLock", client::getSpinLock,
                "fairLock", this::fairLock,
                "readLock", name -> client.getReadWriteLock(name).readLock(),
                "writeLock", name -> client.getReadWriteLock(name).writeLock(),
                "fencedLock", name -> newerLock("getFencedLock", name),
                "nonReentrant", name -> newerLock("getNonReentrantLock", name),
                "multiLock", names -> new RedissonMultiLock(members(names)),
                "redLock", this::redLock);
    }

    private RedissonClient client(int server) {
        return clients.computeIfAbsent(server, index -> {
            Config config = new Config();
            config.setLockWatchdogTimeout(watchdog);
            if (hasPlaceInConfig()) {
                call(config, Config.class, "setFairLockWaitTimeout", new Class<?>[] {long.class}, place);
            }
            config.setThreads(4);
            config.setNettyThreads(4);
            if (urls.get(index).startsWith("redis-cluster://")) {
                String[] url = urls.get(index).substring("redis-cluster://".length()).split("\\?");
                ClusterServersConfig cluster = config.useClusterServers()
                        .addNodeAddress("redis://" + url[0])
                        .setMasterConnectionMinimumIdleSize(1)
                        .setMasterConnectionPoolSize(16)
                        .setReadMode(ReadMode.MASTER);
                if (url.length > 1 && url[1].equals("notifications=classic")) {
                    classicChannels(cluster);
                }
                if (patience > 0) { // a slot that moves refuses requests for seconds
                    cluster.setTimeout(patience).setRetryAttempts(10);
                }
                return connected(config);
            }
            SingleServerConfig single = config.useSingleServer()
                    .setAddress(urls.get(index))
                    .setConnectionMinimumIdleSize(1)
                    .setConnectionPoolSize(16);
            if (System.getProperty(PREFIX) != null) {
                mapNames(config, single);
            }
            if (patience > 0) {
                single.setTimeout(patience).setRetryAttempts(0);
            }
            return connected(config);
        });
    }

    /** Versions before 3.22 have no others. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void classicChannels(ClusterServersConfig cluster) {
        for (Method method : ClusterServersConfig.class.getMethods()) {
            if (method.getName().equals("setShardedSubscriptionMode")) {
                Class<?> type = method.getParameterTypes()[0];
                call(cluster, ClusterServersConfig.class, method.getName(), new Class<?>[] {type},
                        Enum.valueOf((Class<Enum>) type, "OFF"));
            }
        }
    }

    /**
     * Redisson's x becomes prefix + x in Redis. The type of the mapper, and where it is set, differ
     * from version to version.
     */
    private static void mapNames(Config config, SingleServerConfig single) {
        String prefix = System.getProperty(PREFIX);
        for (Object where : new Object[] {config, single}) {
            for (Method method : where.getClass().getMethods()) {
                if (method.getName().equals("setNameMapper")) {
                    Class<?> type = method.getParameterTypes()[0];
                    Object mapper = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
                            (proxy, asked, names) -> asked.getName().equals("map") ? prefix + names[0]
                                    : names[0].toString().substring(prefix.length()));
                    call(where, where.getClass(), "setNameMapper", new Class<?>[] {type}, mapper);
                    return;
                }
            }
        }
        throw new UnsupportedOperationException("this version of Redisson maps no names");
    }

    /** In the first seconds of a process even PING can take longer than {@code patience}. */
    private RedissonClient connected(Config config) {
        for (int attempt = 1;; ++attempt) {
            try {
                return Redisson.create(config);
            } catch (RedisException e) {
                if (patience == 0 || attempt == 10) {
                    throw e;
                }
            }
        }
    }

    String id() {
        return client.getId();
    }

    /** Of the first server. */
    RedissonClient client() {
        return client;
    }

    /** @return false, a value for the answer, or true or null when the answer has no value. */
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

    /**
     * How a thread enters an object, and leaves it. The leases of permits are those of the watchdog.
     *
     * @param wait for a lock, in milliseconds, 0: without a bound; when it is over, entering throws TimeoutException
     */
    Repeat.Step[] turnstile(String kind, String name, int wait) {
        if (kind.equals("semaphore")) {
            RSemaphore semaphore = client.getSemaphore(name);
            return new Repeat.Step[] {semaphore::acquire, semaphore::release};
        }
        if (kind.equals("permitExpirableSemaphore")) {
            RPermitExpirableSemaphore semaphore = client.getPermitExpirableSemaphore(name);
            String[] permit = new String[1];
            return new Repeat.Step[] {() -> permit[0] = semaphore.acquire(watchdog, TimeUnit.MILLISECONDS),
                    () -> semaphore.release(permit[0])};
        }
        RLock lock = locks.computeIfAbsent(kind + " " + name, unused -> lockKind(kind).apply(name));
        return new Repeat.Step[] {wait == 0 ? lock::lock : () -> {
            if (!lock.tryLock(wait, -1, TimeUnit.MILLISECONDS)) {
                throw new TimeoutException();
            }
        }, lock::unlock};
    }

    // --- Locks -------------------------------------------------------------------------------------------------------

    private Function<String, RLock> lockKind(String kind) {
        Function<String, RLock> known = lockKinds.get(kind);
        if (known == null) {
            throw new IllegalArgumentException("no kind " + kind);
        }
        return known;
    }

    private RLock[] members(String names) {
        return Arrays.stream(names.split(",")).map(this::member).toArray(RLock[]::new);
    }

    private RLock member(String name) {
        String[] words = name.split("@");
        return client(words.length == 1 ? 0 : Integer.parseInt(words[1])).getLock(words[0]);
    }

    @SuppressWarnings("deprecation") // still there, still used
    private RLock redLock(String names) {
        return new RedissonRedLock(members(names));
    }

    /** Old versions have no setting for the time, but an argument of the constructor. */
    private RLock fairLock(String name) {
        return hasPlaceInConfig() ? client.getFairLock(name)
                : make(RedissonFairLock.class, ((Redisson) client).getCommandExecutor(), name, place);
    }

    private static boolean hasPlaceInConfig() {
        return Arrays.stream(Config.class.getMethods())
                .anyMatch(method -> method.getName().equals("setFairLockWaitTimeout"));
    }

    private static <T> T make(Class<T> type, CommandAsyncExecutor executor, String name, long time) {
        try {
            return type.getConstructor(CommandAsyncExecutor.class, String.class, long.class)
                    .newInstance(executor, name, time);
        } catch (ReflectiveOperationException e) {
            throw new UnsupportedOperationException(e);
        }
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
            case "count", "look", "crowd":
                return new Repeat(client, arguments.word(0)).run(operation, lock::lock, lock::unlock);
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

    private Object onFencedLock(RLock lock, String operation, Arguments arguments) throws Exception {
        Class<?> type = Arrays.stream(lock.getClass().getInterfaces())
                .filter(candidate -> candidate.getSimpleName().equals("RFencedLock"))
                .findFirst()
                .orElseThrow(() -> unknown(operation));
        switch (operation) {
            case "token":
                return call(lock, type, "getToken", new Class<?>[] {});
            case "lockAndGetToken":
                return call(lock, type, "lockAndGetToken", new Class<?>[] {});
            case "countTokens":
                RList<String> tokens = client.getList(arguments.word(0) + ":tokens", StringCodec.INSTANCE);
                return new Repeat(client, arguments.word(0)).run("count",
                        () -> tokens.add(call(lock, type, "lockAndGetToken", new Class<?>[] {}).toString()),
                        lock::unlock);
            case "tryLockAndGetToken":
                Object token = call(lock, type, "tryLockAndGetToken",
                        new Class<?>[] {long.class, long.class, TimeUnit.class}, arguments.number(0),
                        arguments.number(1), TimeUnit.MILLISECONDS);
                return token == null ? false : token;
            default:
                throw unknown(operation);
        }
    }

    // --- Semaphores and the latch ------------------------------------------------------------------------------------

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
            case "count", "crowd":
                return new Repeat(client, arguments.word(0)).run(operation, semaphore::acquire, semaphore::release);
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
            case "count", "crowd":
                String[] permit = new String[1];
                return new Repeat(client, arguments.word(0)).run(operation, () -> permit[0] = semaphore.acquire(),
                        () -> semaphore.release(permit[0]));
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

    // --- Common parts ------------------------------------------------------------------------------------------------

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
