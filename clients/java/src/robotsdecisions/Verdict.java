package robotsdecisions;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/**
 * Whether a page may be fetched.
 *
 * @param rule the deciding line of robots.txt, or null
 * @param line the number of that line, or null
 * @param summary the service's own sentence
 * @param interval the time from one document to the next, or null
 * @param retryAt when to ask again after a defer, or null
 * @param version the id of the bytes of robots.txt, or null
 * @param members the whole answer, as the HTTP API has it
 */
public record Verdict(
        String url,
        String agent,
        Decision decision,
        String reason,
        String rule,
        Integer line,
        String summary,
        Duration interval,
        Instant retryAt,
        String version,
        Map<String, Object> members)
        implements BatchAnswer {
    @Override
    public boolean allowed() {
        return decision == Decision.ALLOW;
    }
}
