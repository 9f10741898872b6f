package robotsdecisions;

import java.time.Duration;
import java.util.OptionalDouble;
import java.util.function.DoubleSupplier;

/**
 * The whole exchange about one page, without I/O: perform each step, and give {@code next} the answer to an Ask, or null.
 *
 * <p>It ends with a grant when its slot begins, or with the answer for which there is none within {@code maxWait} seconds.
 */
final class Conversation {
    sealed interface Step {
        /** Ask for a slot that begins within {@code left} seconds. */
        record Ask(double left) implements Step {}

        /** Sleep because of an answer; if interrupted, release the slot if that is a grant. */
        record Sleep(double seconds, Answer because) implements Step {}

        record End(Answer answer) implements Step {}
    }

    /** Seconds by which a slot may always be missed: timers are not exact. */
    private static final double GRACE = 0.1;

    private final DoubleSupplier monotonic;
    private final Patience patience;
    private Answer.Granted holding;
    private double due;

    /** With {@code retry}, a service that is silent is asked again until {@code maxWait} seconds are over. */
    Conversation(double maxWait, boolean retry, DoubleSupplier monotonic) {
        this.monotonic = monotonic;
        this.patience = new Patience(maxWait, retry, monotonic);
    }

    Step next(Answer answer) {
        if (answer instanceof Answer.Granted granted) {
            double left = patience.left();
            if (granted.delay() > left + GRACE) {
                return new Step.End(Answers.notOurs("a slot in " + granted.delay() + " s, and at most " + left + " s were asked for"));
            }
            holding = granted;
            due = monotonic.getAsDouble() + granted.delay();
            return new Step.Sleep(granted.delay(), granted);
        }
        if (answer != null) {
            OptionalDouble seconds = patience.after(answer);
            return seconds.isPresent() ? new Step.Sleep(seconds.getAsDouble(), answer) : new Step.End(answer);
        }
        if (holding != null) {
            Answer.Granted begun = holding;
            holding = null;
            if (monotonic.getAsDouble() - due <= Math.max(begun.interval(), GRACE)) {
                return new Step.End(begun);
            }
            // Nothing to release: the slot is over.
        }
        return new Step.Ask(Math.min(patience.left(), Answers.MAX_PERMIT_WAIT));
    }

    static Duration duration(double seconds) {
        return Duration.ofNanos(Math.round(seconds * 1e9));
    }

    static double seconds(Duration duration) {
        return duration.getSeconds() + duration.getNano() / 1e9;
    }
}
