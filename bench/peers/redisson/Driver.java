import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * One process that locks and unlocks with Redisson; bench/peers/README.md has the protocol that all drivers follow.
 */
public final class Driver {
    /** One lock, in nanoseconds of the monotonic clock; {@code released} is before the call. */
    private static final class Line {
        final long begin;
        long granted;
        long released;
        final int thread;

        Line(long begin, int thread) {
            this.begin = begin;
            this.thread = thread;
        }
    }

    private final String row;
    private final String name;
    private final int threads;
    private final long sectionNanos;
    private final int process;
    private final int locks;
    private final RedissonClient client;
    private final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private Driver(String row, Map<String, String> options) {
        this.row = row;
        name = options.getOrDefault("--name", "peers");
        threads = Integer.parseInt(options.getOrDefault("--threads", "1"));
        sectionNanos = 1000 * Long.parseLong(options.getOrDefault("--section-us", "0"));
        process = Integer.parseInt(options.getOrDefault("--process", "0"));
        locks = Integer.parseInt(options.getOrDefault("--locks", "0"));
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + options.getOrDefault("--port", "6379"));
        long lease = Long.parseLong(options.getOrDefault("--lease-ms", "0"));
        if (lease > 0) {
            config.setLockWatchdogTimeout(lease);
        }
        client = Redisson.create(config);
    }

    public static void main(String[] arguments) throws Exception {
        long start = System.nanoTime(); // CLOCK_MONOTONIC
        Map<String, String> options = new HashMap<>();
        for (int at = 1; at + 1 < arguments.length; at += 2) {
            options.put(arguments[at], arguments[at + 1]);
        }
        new Driver(arguments[0], options).run(start);
        Runtime.getRuntime().halt(0);
    }

    private void run(long start) throws Exception {
        Line first = new Line(start, 0);
        once(first, name, () -> { });
        say("ready");
        for (String order = input.readLine(); order != null; order = input.readLine()) {
            String[] words = order.split(" ");
            write(row.equals("start_up") ? List.of(first) : round(Double.parseDouble(words[1])), words[2]);
            say("done");
        }
    }

    private List<Line> round(double seconds) throws Exception {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        if (row.equals("held")) {
            return hold();
        }
        if (row.equals("hand_over")) {
            return process == 0 ? give(end) : take();
        }
        return inAll(thread -> {
            String lockName = row.equals("uncontended") ? ownName(thread) : name;
            List<Line> lines = new ArrayList<>();
            while (System.nanoTime() < end) {
                lines.add(once(new Line(System.nanoTime(), thread), lockName, this::section));
            }
            return lines;
        });
    }

    private Line once(Line line, String lockName, Runnable work) {
        RLock lock = client.getLock(lockName);
        lock.lock();
        try {
            line.granted = System.nanoTime();
            work.run();
            line.released = System.nanoTime();
        } finally {
            lock.unlock();
        }
        return line;
    }

    /** The process that holds the lock and gives it away. */
    private List<Line> give(long end) throws IOException {
        List<Line> lines = new ArrayList<>();
        while (System.nanoTime() < end) {
            lines.add(once(new Line(System.nanoTime(), 0), name, () -> {
                say("held");
                section();
            }));
            if (!"next".equals(input.readLine())) {
                throw new IOException("no next");
            }
        }
        return lines;
    }

    /** The process that waits for the lock. */
    private List<Line> take() throws IOException {
        List<Line> lines = new ArrayList<>();
        while ("ask".equals(input.readLine())) {
            lines.add(once(new Line(System.nanoTime(), 0), name, () -> { }));
            say("had");
        }
        return lines;
    }

    /** Holds many locks at once until the line "release" comes. */
    private List<Line> hold() throws Exception {
        CountDownLatch held = new CountDownLatch(threads);
        CountDownLatch release = new CountDownLatch(1);
        Thread director = new Thread(() -> {
            try {
                held.await();
                say("held");
                if (!"release".equals(input.readLine())) {
                    throw new IOException("no release");
                }
                release.countDown();
            } catch (IOException | InterruptedException error) {
                fail(error);
            }
        });
        director.start();
        return inAll(thread -> {
            List<Line> lines = new ArrayList<>();
            for (int number = thread; number < locks; number += threads) {
                Line line = new Line(System.nanoTime(), number);
                client.getLock(ownName(number)).lock();
                line.granted = System.nanoTime();
                lines.add(line);
            }
            held.countDown();
            try {
                release.await();
            } catch (InterruptedException error) {
                fail(error);
            }
            for (Line line : lines) {
                line.released = System.nanoTime();
                client.getLock(ownName(line.thread)).unlock();
            }
            return lines;
        });
    }

    /** Runs body in each thread and joins the lines of all in one list. */
    private List<Line> inAll(IntFunction<List<Line>> body) throws InterruptedException {
        List<Line> all = new ArrayList<>();
        List<Thread> running = new ArrayList<>();
        for (int number = 0; number < threads; ++number) {
            int thread = number;
            Thread one = new Thread(() -> {
                try {
                    List<Line> lines = body.apply(thread);
                    synchronized (all) {
                        all.addAll(lines);
                    }
                } catch (RuntimeException error) {
                    fail(error);
                }
            });
            running.add(one);
            one.start();
        }
        for (Thread one : running) {
            one.join();
        }
        return all;
    }

    private String ownName(int number) {
        return name + ":" + process + ":" + number;
    }

    private void section() {
        long end = System.nanoTime() + sectionNanos;
        for (long rest = sectionNanos; rest > 0; rest = end - System.nanoTime()) {
            LockSupport.parkNanos(rest);
        }
    }

    private void write(List<Line> lines, String path) throws IOException {
        try (PrintWriter file = new PrintWriter(path, StandardCharsets.UTF_8)) {
            for (Line line : lines) {
                file.printf("%d %d %d %d %d%n", line.begin, line.granted, line.released, process, line.thread);
            }
            if (file.checkError()) {
                throw new IOException("cannot write " + path);
            }
        }
    }

    private static void say(String word) {
        System.out.println(word);
    }

    private static void fail(Exception error) {
        error.printStackTrace();
        Runtime.getRuntime().halt(1);
    }
}
