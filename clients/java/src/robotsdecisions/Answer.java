package robotsdecisions;

/** What the service answers to one question. */
sealed interface Answer {
    /**
     * The page may be fetched {@code delay} seconds after the answer; the slot lasts {@code interval} seconds. With {@code refused}, the
     * origin refused pages to this agent before, so a success is reported, too.
     */
    record Granted(String permit, double delay, double interval, boolean refused) implements Answer {}

    /** The page may not be fetched. */
    record Denied(String reason, String rule, Integer line) implements Answer {}

    /** Ask again in {@code seconds}. */
    record Later(double seconds, String reason) implements Answer {}

    /** The service rejects the question. */
    record Invalid(String why) implements Answer {}

    /** The service did not answer, or its answer is invalid. */
    record None(String why) implements Answer {}

    /** The verdict on a page that was asked about without a permit. */
    record Decided(Verdict verdict) implements Answer {}
}
