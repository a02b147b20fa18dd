package redislock.interop;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeoutException;

/**
 * The actions of a thread under load: it comes in, stays for a moment, and leaves, again and again. By the words of
 * cpp/load.hpp, except that each turn uses the objects of the process, and that two of three turns in a fair lock have
 * a bounded wait; when that is over, the thread asks again later.
 */
final class Load {
    interface Tell {
        void line(String thread, String how, long nanos, String what);
    }

    /** In milliseconds; 0: without a bound. */
    private static final int[] FAIR_WAITS = {0, 3000, 8000};

    private final Objects objects;
    private final Tell tell;
    private volatile boolean ending;

    Load(Objects objects, Tell tell) {
        this.objects = objects;
        this.tell = tell;
    }

    /** @param words kind, "load", name, style, milliseconds inside, the longest pause in milliseconds */
    Object run(String thread, List<String> words) throws Exception {
        String kind = words.get(0);
        String name = words.get(2);
        if (kind.equals("end")) {
            ending = true;
            return null;
        }
        int hold = Integer.parseInt(words.get(4));
        int pause = Integer.parseInt(words.get(5));
        tell.line(thread, "client", 0, objects.id());
        while (!ending) {
            boolean reads = kind.equals("readWrite") && ThreadLocalRandom.current().nextInt(4) != 0;
            String half = kind.equals("readWrite") ? reads ? "readLock" : "writeLock" : kind;
            int wait = kind.equals("fairLock") ? FAIR_WAITS[ThreadLocalRandom.current().nextInt(FAIR_WAITS.length)] : 0;
            turn(thread, reads ? "r" : "w", objects.turnstile(half, name, wait), hold);
            if (pause > 0) {
                Thread.sleep(ThreadLocalRandom.current().nextInt(1, pause + 1));
            }
        }
        return null;
    }

    private void turn(String thread, String mode, Repeat.Step[] door, int hold) throws Exception {
        long asked = System.nanoTime();
        try {
            door[0].run();
        } catch (TimeoutException e) {
            return;
        } catch (Exception e) { // of a busy machine: Redisson gives up after 3 s without an answer
            tell.line(thread, "failed", System.nanoTime(), told(e));
            return;
        }
        long entered = System.nanoTime();
        tell.line(thread, "in", entered, (entered - asked) / 1000 + " " + mode);
        if (hold > 0) {
            Thread.sleep(hold);
        }
        tell.line(thread, "out", System.nanoTime(), null);
        try {
            door[1].run();
        } catch (Exception e) {
            tell.line(thread, "lost", System.nanoTime(), told(e));
        }
    }

    private static String told(Exception e) {
        String text = e.toString().replaceAll("\\s+", " ");
        return text.substring(0, Math.min(text.length(), 200));
    }
}
