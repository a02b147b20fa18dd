import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import org.redisson.config.SentinelServersConfig;

/**
 * Locks and unlocks with Redisson in the rounds of bench/failover, and writes a line for each success and each error.
 * Orders: {@code begin ROUND MASTER PORT...} (MASTER cluster: nodes; else one port: a server; more: Sentinels) and
 * {@code end}.
 */
public final class FailOver {
    private static final int TIMEOUT_MS = 3000;
    private static final int LEASE_MS = 2000;

    private static volatile String current = "";

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        RedissonClient client = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            current = words.length > 1 ? words[1] : "";
            RedissonClient of = words.length > 1 ? Redisson.create(configOf(words)) : client;
            // the last call of a round may hang, and so may the end of the client
            Runnable work = () -> of.shutdown(0, 1, TimeUnit.SECONDS);
            new Thread(words.length > 1 ? () -> loop(of, words[1]) : work).start();
            client = of;
        }
        Runtime.getRuntime().halt(0);
    }

    private static Config configOf(String[] words) {
        Config config = new Config();
        if (words.length == 4) {
            config.useSingleServer().setAddress("redis://127.0.0.1:" + words[3])
                .setTimeout(TIMEOUT_MS).setConnectTimeout(TIMEOUT_MS);
            return config;
        }
        if (words[2].equals("cluster")) {
            ClusterServersConfig nodes = config.useClusterServers().setTimeout(TIMEOUT_MS).setConnectTimeout(TIMEOUT_MS)
                .setReadMode(ReadMode.MASTER);
            for (int i = 3; i < words.length; ++i) {
                nodes.addNodeAddress("redis://127.0.0.1:" + words[i]);
            }
            return config;
        }
        SentinelServersConfig servers = config.useSentinelServers().setMasterName(words[2])
            .setTimeout(TIMEOUT_MS).setConnectTimeout(TIMEOUT_MS);
        for (int i = 3; i < words.length; ++i) {
            servers.addSentinelAddress("redis://127.0.0.1:" + words[i]);
        }
        return config;
    }

    private static void loop(RedissonClient client, String round) {
        for (long number = 0; current.equals(round); ++number) {
            try {
                Thread.sleep(1); // also after an error
                RLock lock = client.getLock("{gap}:redisson:" + number);
                if (lock.tryLock(0, LEASE_MS, TimeUnit.MILLISECONDS)) {
                    System.out.println(round + " " + System.nanoTime()); // CLOCK_MONOTONIC
                    lock.unlock();
                } else {
                    System.out.println(round + " error tryLock: false");
                }
            } catch (Exception error) {
                System.out.println(round + " error " + error.toString().replace('\n', ' '));
            }
        }
    }
}
