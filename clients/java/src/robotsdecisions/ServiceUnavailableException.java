package robotsdecisions;

/** The service is unavailable, so nothing is known about the page. */
public sealed class ServiceUnavailableException extends PermitException permits MisconfiguredException {
    private static final long serialVersionUID = 1;

    ServiceUnavailableException(String message) {
        super(message);
    }
}
