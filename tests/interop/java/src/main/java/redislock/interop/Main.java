package redislock.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * A process with Redisson that executes commands from standard input, one on each line, until the input ends:
 *
 * <pre>thread kind operation object arguments...</pre>
 *
 * and answers each on standard output, with the microseconds that it took:
 *
 * <pre>
 * thread ok micros [value]
 * thread false micros
 * thread error micros Class: message
 * </pre>
 *
 * A thread is any word; commands with the same word run in one Java thread, in their order, and commands with
 * different words at the same time. Kinds and operations are in {@link Objects}, except {@code load}, which is in
 * {@link Load}. The first answer comes without a command: {@code start ok micros id}, when the client has reached the
 * server.
 */
public final class Main {
    private final Objects objects;
    private final Load load;
    private final PrintStream output;
    private final Map<String, ExecutorService> threads = new HashMap<>();

    private Main(Objects objects, PrintStream output) {
        this.objects = objects;
        this.output = output;
        this.load = new Load(objects, this::line);
    }

    /**
     * Arguments: the watchdog's timeout, how long a place in a fair queue is kept and how long a server may take to
     * answer, in milliseconds; the servers' URLs.
     */
    public static void main(String[] arguments) throws Exception {
        long begin = System.nanoTime();
        Objects objects = new Objects(Long.parseLong(arguments[0]), Long.parseLong(arguments[1]),
                Integer.parseInt(arguments[2]), Arrays.asList(arguments).subList(3, arguments.length));
        Main main = new Main(objects, new PrintStream(System.out, true, StandardCharsets.UTF_8));
        main.answer("start", "ok", begin, objects.id());
        main.readCommands();
        // Without a shutdown: held locks are left as by a crash.
        Runtime.getRuntime().halt(0);
    }

    private void readCommands() throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            List<String> words = Arrays.asList(line.split(" "));
            String thread = words.get(0);
            threads.computeIfAbsent(thread, Main::newThread).execute(() -> run(thread, words));
        }
    }

    private static ExecutorService newThread(String name) {
        return Executors.newSingleThreadExecutor(body -> {
            Thread thread = new Thread(body, name);
            thread.setDaemon(true);
            return thread;
        });
    }

    private void run(String thread, List<String> words) {
        long begin = System.nanoTime();
        try {
            Object result = words.get(2).equals("load") ? load.run(thread, words.subList(1, words.size()))
                    : objects.run(words.get(1), words.get(2), words.get(3), words.subList(4, words.size()));
            if (Boolean.FALSE.equals(result)) {
                answer(thread, "false", begin, null);
            } else {
                answer(thread, "ok", begin, Boolean.TRUE.equals(result) ? null : result);
            }
        } catch (Exception e) {
            String message = e.getClass().getSimpleName() + ": " + e.getMessage();
            answer(thread, "error", begin, message.replaceAll("\\s+", " "));
        }
    }

    private void answer(String thread, String how, long begin, Object value) {
        line(thread, how, System.nanoTime() - begin, value == null ? null : value.toString());
    }

    private void line(String thread, String how, long nanos, String value) {
        output.println(thread + " " + how + " " + TimeUnit.NANOSECONDS.toMicros(nanos) + (value == null ? "" : " " + value));
    }
}
