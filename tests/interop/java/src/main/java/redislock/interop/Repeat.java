package redislock.interop;

import org.redisson.api.RAtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * What a thread does again and again inside a lock or with a permit, until the key {@code key:end} exists. {@code key:turns}
 * counts how often one that counts came after one of the other language.
 *
 * <ul>
 * <li>count: counts the key up, and then its copy, by GET, then SET. The result is how often.
 * <li>look: reads the key and its copy. The result is how often; an error, when they are not equal.
 * <li>crowd: counts those who are inside, by INCR and DECR. The result is the most that it saw.
 * </ul>
 */
final class Repeat {
    interface Step {
        void run() throws Exception;
    }

    private final RBucket<String> number;
    private final RBucket<String> copy;
    private final RBucket<String> language;
    private final RBucket<String> end;
    private final RAtomicLong turns;
    private final RAtomicLong inside;

    Repeat(RedissonClient client, String key) {
        this.number = client.getBucket(key, StringCodec.INSTANCE);
        this.copy = client.getBucket(key + ":copy", StringCodec.INSTANCE);
        this.language = client.getBucket(key + ":language", StringCodec.INSTANCE);
        this.end = client.getBucket(key + ":end", StringCodec.INSTANCE);
        this.turns = client.getAtomicLong(key + ":turns");
        this.inside = client.getAtomicLong(key);
    }

    long run(String what, Step enter, Step leave) throws Exception {
        long counted = 0;
        while (!end.isExists()) {
            enter.run();
            if (what.equals("crowd")) {
                counted = Math.max(counted, crowd());
            } else {
                if (what.equals("count")) {
                    count();
                } else {
                    look();
                }
                ++counted;
            }
            leave.run();
            // Who comes back at once hardly ever meets a process that is not let in by its own neighbour, and readers that
            // always overlap let no writer in.
            Thread.sleep(3);
        }
        return counted;
    }

    private void count() {
        String before = number.get();
        String next = Long.toString((before == null ? 0 : Long.parseLong(before)) + 1);
        number.set(next);
        noteTurn();
        copy.set(next);
    }

    private void noteTurn() {
        if ("C++".equals(language.getAndSet("Java"))) {
            turns.incrementAndGet();
        }
    }

    private void look() {
        String first = number.get();
        String second = copy.get();
        if (!java.util.Objects.equals(first, second)) {
            throw new IllegalStateException("half written: " + first + " and " + second);
        }
    }

    private long crowd() {
        long now = inside.incrementAndGet();
        noteTurn();
        inside.decrementAndGet();
        return now;
    }
}
