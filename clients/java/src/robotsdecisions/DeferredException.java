package robotsdecisions;

import java.time.Duration;
import java.time.Instant;

/** No slot or no verdict within {@code maxWait}: ask again at {@code retryAt}. {@code reason} is "pace", "busy" or the reason of a defer. */
public final class DeferredException extends PermitException {
    private static final long serialVersionUID = 1;

    private final String reason;
    private final Duration wait;
    private final Instant retryAt;

    DeferredException(String message, Answer.Later later) {
        super(message);
        this.reason = later.reason();
        this.wait = Conversation.duration(later.seconds());
        this.retryAt = Instant.now().plus(wait);
    }

    public String reason() {
        return reason;
    }

    /** The time from the answer until {@code retryAt}. */
    public Duration retryAfter() {
        return wait;
    }

    public Instant retryAt() {
        return retryAt;
    }
}
