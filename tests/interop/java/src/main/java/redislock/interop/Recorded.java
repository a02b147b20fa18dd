package redislock.interop;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/**
 * A process of Redisson that takes part in a run of chaos: two threads take and free plain locks of a cluster, and write
 * down what they did, in the format of a history, until the folder has a file {@code end}.
 *
 * <p>Redisson does not tell until when a caller may believe that it has a lock. So leases are fixed, and the caller
 * believes for that long from the beginning of its call.
 */
public final class Recorded {
    private static final long WAIT_MS = 500;
    private static final long LEASE_MS = 1200;
    /** Redisson asks again for a long time, longer than a caller wants to wait. */
    private static final long PATIENCE_MS = 60_000;
    private static final int THREADS = 2;

    private final RedissonClient client;
    private final Path file;
    private final long ahead;
    private final List<String> names;

    private Recorded(RedissonClient client, Path file, long ahead, List<String> names) {
        this.client = client;
        this.file = file;
        this.ahead = ahead;
        this.names = names;
    }

    /**
     * Arguments: the URL of the cluster, the folder of the histories, by how many nanoseconds CLOCK_BOOTTIME is ahead of
     * System.nanoTime(), and the names of the locks.
     */
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[1]);
        RedissonClient client = new Objects(30_000, 300_000, 0, List.of(arguments[0])).client();
        Recorded recorded = new Recorded(client, folder.resolve("client-redisson.jsonl"), Long.parseLong(arguments[2]),
                Arrays.asList(arguments).subList(3, arguments.length));
        recorded.write(recorded.now(), "settings", "event", "",
                ",\"count\":" + PATIENCE_MS + ",\"error\":\"commandTimeout\"");
        for (int thread = 0; thread < THREADS; ++thread) {
            Thread worker = new Thread(recorded::work);
            worker.setDaemon(true);
            worker.start();
        }
        while (!Files.exists(folder.resolve("end"))) {
            Thread.sleep(50);
        }
        Thread.sleep(2 * LEASE_MS); // a call that is under way may end
        Runtime.getRuntime().halt(0);
    }

    private void work() {
        while (true) {
            String name = names.get(ThreadLocalRandom.current().nextInt(names.size()));
            try {
                turn(client.getLock(name), name);
                Thread.sleep(ThreadLocalRandom.current().nextInt(1, 30));
            } catch (Exception e) {
                e.printStackTrace();
            }
        }
    }

    private void turn(RLock lock, String name) throws Exception {
        long asked = now();
        write(asked, "lock", "invoke", name,
                ",\"lease\":" + LEASE_MS + ",\"wait\":" + WAIT_MS + ",\"error\":\"fixed\"");
        boolean isIn;
        try {
            isIn = lock.tryLock(WAIT_MS, LEASE_MS, TimeUnit.MILLISECONDS);
        } catch (RuntimeException e) {
            write(now(), "lock", "unknown", name, "");
            return;
        }
        long until = asked + (LEASE_MS - LEASE_MS / 50 - 2) * 1_000_000;
        if (!isIn || now() > until) {
            write(now(), "lock", isIn ? "unknown" : "fail", name, "");
            return;
        }
        String holder = client.getId() + ":" + Thread.currentThread().getId();
        write(now(), "lock", "ok", name, ",\"count\":1,\"D\":" + until + ",\"holder\":\"" + holder + "\"");
        Thread.sleep(ThreadLocalRandom.current().nextInt(0, 10));
        write(now(), "unlock", "invoke", name, "");
        try {
            lock.unlock();
            write(now(), "unlock", "ok", name, ",\"count\":0,\"error\":\"released\"");
        } catch (RuntimeException e) { // its lease is over, or nobody answered
            write(now(), "unlock", "unknown", name, "");
        }
    }

    private long now() {
        return System.nanoTime() + ahead;
    }

    private void write(long time, String op, String phase, String name, String more) throws IOException {
        String line = "{\"t\":" + time + ",\"pid\":" + ProcessHandle.current().pid() + ",\"thread\":"
                + Thread.currentThread().getId() + ",\"op\":\"" + op + "\",\"phase\":\"" + phase + "\",\"client\":\""
                + client.getId() + (name.isEmpty() ? "\"" : "\",\"lock\":\"" + name + "\"") + more + "}\n";
        Files.write(file, line.getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
