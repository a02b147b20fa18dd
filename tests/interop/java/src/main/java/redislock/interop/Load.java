package redislock.interop;

import java.util.concurrent.ThreadLocalRandom;

/**
 * The actions of a thread under load: it comes in, stays for a moment, and leaves, again and again. By the words of
 * cpp/load.hpp, except that each turn uses the objects of the process.
 */
final class Load {
    interface Tell {
        void line(String thread, String how, long nanos, String what);
    }

    private final Objects objects;
    private final Tell tell;
    private volatile boolean ending;

    Load(Objects objects, Tell tell) {
        this.objects = objects;
        this.tell = tell;
    }

    Object run(String thread, String kind, String name) throws Exception {
        if (kind.equals("end")) {
            ending = true;
            return null;
        }
        tell.line(thread, "client", 0, objects.id());
        while (!ending) {
            boolean reads = kind.equals("readWrite") && ThreadLocalRandom.current().nextInt(4) != 0;
            String half = kind.equals("readWrite") ? reads ? "readLock" : "writeLock" : kind;
            turn(thread, reads ? "r" : "w", objects.turnstile(half, name));
            Thread.sleep(ThreadLocalRandom.current().nextInt(1, 7));
        }
        return null;
    }

    private void turn(String thread, String mode, Repeat.Step[] door) throws Exception {
        long asked = System.nanoTime();
        try {
            door[0].run();
        } catch (Exception e) { // of a busy machine: Redisson gives up after 3 s without an answer
            tell.line(thread, "failed", System.nanoTime(), told(e));
            return;
        }
        long entered = System.nanoTime();
        tell.line(thread, "in", entered, (entered - asked) / 1000 + " " + mode);
        Thread.sleep(1);
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
