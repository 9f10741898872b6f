package robotsdecisions;

import java.net.http.HttpResponse;
import java.time.Duration;

/**
 * A slot that has begun. Closing it sends the service what was reported, if it wants to know. A slot without a report counts
 * as used.
 */
public final class Permit implements AutoCloseable {
    static final String RELEASED = "{\"released\":true}";

    private final Client client;
    private final Answer.Granted grant;
    private final long begun = System.nanoTime();
    private String outcome;
    private boolean closed;

    Permit(Client client, Answer.Granted grant) {
        this.client = client;
        this.grant = grant;
    }

    /** False if the service was unavailable and the page is fetched without a permit. */
    public boolean granted() {
        return grant != null;
    }

    /** The time until the next slot; zero if unknown. */
    public Duration interval() {
        return grant == null ? Duration.ZERO : Conversation.duration(grant.interval());
    }

    /** Note the status of the page, and its Retry-After header, or null. */
    public synchronized void report(int status, String retryAfter) {
        double elapsed = (System.nanoTime() - begun) / 1e9;
        outcome = grant != null && Protocol.toReport(grant, status) ? Protocol.outcome(status, retryAfter, elapsed) : null;
    }

    /** Note the response of the page. */
    public void report(HttpResponse<?> response) {
        report(response.statusCode(), response.headers().firstValue("retry-after").orElse(null));
    }

    /** Note that the page is not fetched, so that the slot is free for the next. */
    public synchronized void release() {
        outcome = RELEASED;
    }

    /** Send the outcome. It is lost if the service cannot be reached. */
    @Override
    public synchronized void close() {
        if (!closed && grant != null && outcome != null) {
            client.outcome(grant, outcome);
        }
        closed = true;
    }
}
