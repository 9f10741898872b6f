package robotsdecisions;

/** The service rejects the URL, the agent or another member of the question. */
public final class NotUnderstoodException extends PermitException {
    private static final long serialVersionUID = 1;

    NotUnderstoodException(String message) {
        super(message);
    }
}
