package redislock.interop;

import org.redisson.api.RAtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * The repeated actions of a thread inside a lock or with a permit, until the key {@code key:end} exists.
 * {@code key:turns} counts how often a counting thread came after one of the other language.
 *
 * <ul>
 * <li>count: counts the key up, and then its copy, by GET, then SET. The result is how often.
 * <li>look: reads the key and its copy. The result is how often; an error, when they are not equal.
 * <li>crowd: counts the threads inside, by INCR and DECR. The result is the greatest count that it saw.
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
            // Without a pause the lock would nearly always go on to a thread of the same process, and readers that
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
