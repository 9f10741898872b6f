package robotsdecisions;

/** The answer to a question of a batch. */
public sealed interface BatchAnswer permits Verdict, Unanswered {
    String url();

    String agent();

    /** Whether the page may be fetched. */
    boolean allowed();
}
