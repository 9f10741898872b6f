package robotsdecisions;

/** The service rejects the URL or the agent as malformed. */
public final class NotUnderstoodException extends PermitException {
    private static final long serialVersionUID = 1;

    NotUnderstoodException(String message) {
        super(message);
    }
}
