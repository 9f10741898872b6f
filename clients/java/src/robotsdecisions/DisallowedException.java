package robotsdecisions;

/** The page may not be fetched: {@code reason}, and the {@code rule} of robots.txt and its {@code line} if one decided. */
public final class DisallowedException extends PermitException {
    private static final long serialVersionUID = 1;

    private final String reason;
    private final String rule;
    private final Integer line;

    DisallowedException(String message, Answer.Denied denied) {
        super(message);
        this.reason = denied.reason();
        this.rule = denied.rule();
        this.line = denied.line();
    }

    public String reason() {
        return reason;
    }

    /** The deciding line of robots.txt, or null. */
    public String rule() {
        return rule;
    }

    /** The number of the deciding line, or null. */
    public Integer line() {
        return line;
    }
}
