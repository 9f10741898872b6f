package robotsdecisions;

import java.io.IOException;

/** A page that may not be fetched now. */
public abstract sealed class PermitException extends IOException
        permits DisallowedException, DeferredException, NotUnderstoodException, ServiceUnavailableException {
    private static final long serialVersionUID = 1;

    PermitException(String message) {
        super(message);
    }

    /** The exception for an answer that permits nothing. {@code page} is a URL, or "3 pages". */
    static PermitException of(String page, String service, Answer answer) {
        if (answer instanceof Answer.Denied denied) {
            return new DisallowedException(page + " may not be fetched, says " + service + ": " + denied.sentence(), denied);
        }
        if (answer instanceof Answer.Later later) {
            String why = service + (later.busy() ? " " : " says: ") + later.sentence();
            return new DeferredException(
                    page + " may not be fetched for " + NoAnswer.shortened(later.seconds()) + " s: " + why, later);
        }
        if (answer instanceof Answer.Invalid invalid) {
            return new NotUnderstoodException(service + " rejects " + page + ": " + invalid.sentence());
        }
        Answer.None none = answer instanceof Answer.None told ? told : Answers.notOurs("something else");
        String message = "There is no verdict on " + page + ": " + service + " " + none.sentence();
        return none.silent() ? new ServiceUnavailableException(message) : new MisconfiguredException((message + " " + none.advice()).stripTrailing());
    }
}
