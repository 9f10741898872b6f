package robotsdecisions;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/**
 * Whether a page may be fetched.
 *
 * @param rule the deciding line of robots.txt, or null
 * @param line the number of that line, or null
 * @param interval the time from one document to the next, or null
 * @param retryAt when to ask again after a defer, or null
 * @param members the whole answer, as the HTTP API has it
 */
public record Verdict(
        String url,
        String agent,
        Decision decision,
        String reason,
        String rule,
        Integer line,
        Duration interval,
        Instant retryAt,
        Map<String, Object> members)
        implements BatchAnswer {
    @Override
    public boolean allowed() {
        return decision == Decision.ALLOW;
    }
}
