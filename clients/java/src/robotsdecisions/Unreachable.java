package robotsdecisions;

/** What happens while the service cannot be reached. */
public enum Unreachable {
    /** Throw ServiceUnavailableException. */
    FAIL,
    /** Ask again until the longest wait is over. */
    WAIT,
    /** Fetch the page without a permit. Verdicts fail. */
    ALLOW
}
