package robotsdecisions;

import java.io.IOException;

/** A page that may not be fetched now. */
public abstract sealed class PermitException extends IOException
        permits DisallowedException, DeferredException, NotUnderstoodException, ServiceUnavailableException {
    private static final long serialVersionUID = 1;

    PermitException(String message) {
        super(message);
    }

    /** The exception for an answer that permits nothing. */
    static PermitException of(String url, Answer answer) {
        if (answer instanceof Answer.Denied denied) {
            return new DisallowedException(url, denied);
        }
        if (answer instanceof Answer.Later later) {
            return new DeferredException(url, later);
        }
        if (answer instanceof Answer.Invalid invalid) {
            return new NotUnderstoodException("The service rejects " + url + ": " + invalid.why() + ".");
        }
        String why = answer instanceof Answer.None none ? none.why() : "its answer is of another kind";
        return new ServiceUnavailableException("There is no verdict on " + url + ": " + why + ".");
    }
}
