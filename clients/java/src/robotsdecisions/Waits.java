package robotsdecisions;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;

/** Says why calls wait: one line for each origin, and for the service, when that changes. */
final class Waits {
    private static final System.Logger LOG = System.getLogger(Client.class.getName());

    private final String service;
    private final boolean opens;
    private final Recent<String> states = new Recent<>();
    private final Map<String, Integer> waiting = new HashMap<>();

    /** With {@code opens}, pages are fetched while the service is silent, and {@code open} says so. */
    Waits(String service, boolean opens) {
        this.service = service;
        this.opens = opens;
    }

    /** What the service answered about a page. */
    synchronized void heard(String url, Answer answer) {
        if (states.isEmpty() && (answer instanceof Answer.Decided || answer instanceof Answer.Granted)) {
            return;
        }
        String origin = Requests.origin(url);
        if (answer instanceof Answer.None none) {
            if (none.silent() && !opens) {
                change(service, "silent", service + " " + none.sentence(), System.Logger.Level.INFO);
            }
            return;
        }
        if (answer instanceof Answer.Later later && later.busy()) {
            change(service, later.sentence().substring(0, "answers 429".length()), service + " " + later.sentence(), System.Logger.Level.INFO);
            return;
        }
        ended(service, "answers again");
        if (answer instanceof Answer.Later later) {
            if (!later.reason().equals(Answer.Later.PACE)) {
                Instant until = Instant.now().plus(Conversation.duration(later.seconds())).truncatedTo(ChronoUnit.SECONDS);
                String text = origin + " is deferred until " + until + ": " + service + " says: " + later.sentence();
                change(origin, later.reason(), text, System.Logger.Level.INFO);
            }
        } else if (!(answer instanceof Answer.Decided decided && decided.deferred())) {
            ended(origin, "is no longer deferred");
        }
    }

    /** A page is fetched without a permit. */
    synchronized void open(Answer.None none) {
        String text = service + " " + none.sentence() + " Until it answers, pages are fetched without a permit, at the pace of their sites.";
        change(service, "open", text, System.Logger.Level.WARNING);
    }

    /** A call sleeps because of this answer, until {@code woke}. */
    synchronized void sleeps(String url, Answer because) {
        waiting.merge(key(url, because), 1, Integer::sum);
    }

    synchronized void woke(String url, Answer because) {
        waiting.computeIfPresent(key(url, because), (key, count) -> count == 1 ? null : Integer.valueOf(count - 1));
    }

    private String key(String url, Answer because) {
        boolean all = because instanceof Answer.None || (because instanceof Answer.Later later && later.busy());
        return all ? service : Requests.origin(url);
    }

    private void ended(String key, String text) {
        if (states.remove(key) != null) {
            LOG.log(System.Logger.Level.INFO, key + " " + text);
        }
    }

    private void change(String key, String state, String text, System.Logger.Level level) {
        if (!state.equals(states.put(key, state))) {
            int calls = waiting.getOrDefault(key, 0) + 1;
            LOG.log(level, calls > 1 ? text + " (" + calls + " requests wait)" : text);
        }
    }
}
