package robotsdecisions;

/** What happens while the service is silent: it cannot be reached, does not respond in time, or answers 5xx. */
public enum Unreachable {
    /** Throw ServiceUnavailableException. */
    FAIL,
    /** Ask again until the longest wait is over. */
    WAIT,
    /** Fetch the page without a permit, at most one a second from a site, or at its last known interval. Verdicts fail. */
    ALLOW
}
