package robotsdecisions;

import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;

/**
 * A slot that has begun. Closing it sends the service what was reported. A slot without a report counts
 * as used.
 */
public final class Permit implements AutoCloseable {
    private final Client client;
    private final Answer.Granted grant;
    private final String url;
    private final double interval;
    private final long begun = System.nanoTime();
    private Map<String, Object> outcome;
    private boolean urgent;
    private boolean closed;

    Permit(Client client, String url, Answer.Granted grant) {
        this(client, url, grant, grant.interval());
    }

    /** The slot of a page that is fetched without a grant. */
    Permit(Client client, String url, Answer.Granted grant, double interval) {
        this.client = client;
        this.url = url;
        this.grant = grant;
        this.interval = interval;
    }

    /** False if the service is silent and the page is fetched at the client's own pace. */
    public boolean granted() {
        return grant != null;
    }

    /** The time until the next slot. */
    public Duration interval() {
        return Conversation.duration(interval);
    }

    /** The id of the bytes of robots.txt, or null if the service does not give it. */
    public String version() {
        return grant == null ? null : grant.version();
    }

    /**
     * The header fields by which the service signed a GET of the page, or null. They replace those of the request, User-Agent and
     * From included, and must not go to another URL.
     */
    public Map<String, String> signed() {
        return grant == null ? null : grant.signed();
    }

    /** The request, a GET of the page, with these fields in place of its own; without a signature, without those of another page. */
    public HttpRequest signed(HttpRequest request) {
        return Signatures.sign(request, signed());
    }

    /** Note the status of the page, and its Retry-After header, or null. */
    public void report(int status, String retryAfter) {
        report(status, retryAfter, null);
    }

    /** Note the status of the page, its Retry-After header, and the price that its header crawler-price asks; both may be null. */
    public synchronized void report(int status, String retryAfter, String price) {
        double elapsed = (System.nanoTime() - begun) / 1e9;
        urgent = grant != null && Requests.isUrgent(grant, status);
        outcome = Requests.outcome(status, urgent ? retryAfter : null, elapsed, price, url);
    }

    /** Note the response of the page. */
    public void report(HttpResponse<?> response) {
        HttpHeaders headers = response.headers();
        report(
                response.statusCode(),
                headers.firstValue("retry-after").orElse(null),
                headers.firstValue("crawler-price").orElse(null));
    }

    /** Note that the page is not fetched, so that the slot is free for the next. */
    public synchronized void release() {
        urgent = true;
        outcome = Requests.RELEASED;
    }

    /** Send the outcome: at once if the fleet has to know, else with others. It is lost if the service cannot be reached. */
    @Override
    public synchronized void close() {
        if (!closed && grant != null && outcome != null) {
            if (urgent) {
                client.outcome(grant, outcome);
            } else {
                outcome.put("permit", grant.permit());
                client.outcomes().add(outcome);
            }
        }
        closed = true;
    }
}
