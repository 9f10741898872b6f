package robotsdecisions;

import java.util.Map;

/** What the service answers to one question. A {@code sentence} of the service ends with a full stop. */
sealed interface Answer {
    /**
     * The page may be fetched {@code delay} seconds after the answer; the slot lasts {@code interval} seconds. With {@code refused}, the
     * origin refused pages to this agent before, so a success is reported, too. {@code version} and
     * {@code signed} may be null.
     */
    record Granted(String permit, double delay, double interval, boolean refused, String version, Map<String, String> signed)
            implements Answer {}

    /** The page may not be fetched. */
    record Denied(String reason, String rule, Integer line, String sentence) implements Answer {}

    /** Ask again in {@code seconds}. */
    record Later(double seconds, String reason, String sentence) implements Answer {
        static final String PACE = "pace";
        static final String BUSY = "busy";

        /** Whether all questions have to wait, not only those about this origin. */
        boolean busy() {
            return reason.equals(BUSY);
        }
    }

    /** The service rejects the question. */
    record Invalid(String sentence) implements Answer {}

    /**
     * There is no answer. {@code sentence} goes on after the URL of the service; {@code advice} says what to set if another service
     * answers, or if the key is refused, and is null if the service is silent.
     */
    record None(String sentence, String advice) implements Answer {
        boolean silent() {
            return advice == null;
        }
    }

    /** The answer to a question without a permit. */
    record Decided(BatchAnswer verdict) implements Answer {
        /** Whether it is neither an allow nor a disallow. */
        boolean deferred() {
            return !(verdict instanceof Verdict told) || told.decision() == Decision.DEFER;
        }
    }
}
