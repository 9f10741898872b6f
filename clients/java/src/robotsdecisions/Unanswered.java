package robotsdecisions;

import java.time.Duration;

/**
 * A question of a batch that has no verdict.
 *
 * @param status the status of the problem, 0 if unknown
 * @param retryAfter after which time to ask again, or null
 */
public record Unanswered(String url, String agent, int status, String why, Duration retryAfter) implements BatchAnswer {
    @Override
    public boolean allowed() {
        return false;
    }
}
