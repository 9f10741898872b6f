package robotsdecisions;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/** Outcomes that need not be known at once: they are sent together. */
final class Outcomes {
    /** Outcomes that one request has at most. */
    private static final int OUTCOMES = 1000;

    /** Seconds that an outcome waits for others; and that all wait after a failure. */
    private static final long DELAY = 1;
    private static final long PAUSE = 60;

    private final Predicate<String> send;
    private final Executor threads;
    private List<Map<String, Object>> items = new ArrayList<>();
    private boolean planned;
    private long delay = DELAY;

    /** {@code send} takes the JSON, and says whether it arrived. */
    Outcomes(Predicate<String> send, Executor threads) {
        this.send = send;
        this.threads = threads;
    }

    /** Add one. Beyond OUTCOMES it is dropped. */
    synchronized void add(Map<String, Object> item) {
        if (items.size() < OUTCOMES) {
            items.add(item);
        }
        if (!planned) {
            planned = true;
            CompletableFuture.delayedExecutor(delay, TimeUnit.SECONDS, threads).execute(this::flush);
        }
    }

    /** Send what waits. */
    void flush() {
        List<Map<String, Object>> taken;
        synchronized (this) {
            planned = false;
            taken = items;
            items = new ArrayList<>();
        }
        if (!taken.isEmpty()) {
            boolean arrived = send.test(Json.write(Map.of("items", taken)));
            synchronized (this) {
                delay = arrived ? DELAY : PAUSE;
            }
        }
    }
}
