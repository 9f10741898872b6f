package robotsdecisions;

/** What answers refuses the key, or is not a robots.txt decision service: the message says what to set. */
public final class MisconfiguredException extends ServiceUnavailableException {
    private static final long serialVersionUID = 1;

    MisconfiguredException(String message) {
        super(message);
    }
}
