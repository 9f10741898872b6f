package robotsdecisions;

/** The service is unavailable, so nothing is known about the page. */
public final class ServiceUnavailableException extends PermitException {
    private static final long serialVersionUID = 1;

    ServiceUnavailableException(String message) {
        super(message);
    }
}
