package robotsdecisions;

import java.time.Duration;
import java.util.function.DoubleSupplier;

/**
 * The whole exchange about one page, without I/O: perform each step, and give {@code next} the answer to an Ask, or null.
 *
 * <p>It ends with a grant when its slot begins, or with the answer for which there is none within {@code maxWait} seconds.
 */
final class Conversation {
    sealed interface Step {
        /** Ask for a slot that begins within {@code maxWait} seconds. */
        record Ask(double maxWait) implements Step {}

        /** Sleep; if interrupted, release the slot in {@code holding}, unless it is null. */
        record Sleep(double seconds, Answer.Granted holding) implements Step {}

        record End(Answer answer) implements Step {}
    }

    private final DoubleSupplier monotonic;
    private final boolean retry;
    private final double ends;
    private double pause = Protocol.FIRST_RETRY_DELAY;
    private Answer.Granted holding;
    private double due;

    /** With {@code retry}, a service that does not respond is asked again until {@code maxWait} seconds are over. */
    Conversation(double maxWait, boolean retry, DoubleSupplier monotonic) {
        this.monotonic = monotonic;
        this.retry = retry;
        this.ends = monotonic.getAsDouble() + maxWait;
    }

    Step next(Answer answer) {
        if (answer instanceof Answer.Granted granted) {
            double left = left();
            if (granted.delay() > left + Protocol.GRACE) {
                return new Step.End(new Answer.None(
                        "it granted a slot in " + granted.delay() + " s, but at most " + left + " s were requested"));
            }
            holding = granted;
            due = monotonic.getAsDouble() + granted.delay();
            return new Step.Sleep(granted.delay(), granted);
        }
        if (answer instanceof Answer.Later later) {
            return sleep(later.seconds(), answer);
        }
        if (answer instanceof Answer.None && retry) {
            double seconds = pause;
            pause = Math.min(pause * 2, Protocol.LAST_RETRY_DELAY);
            return sleep(seconds, answer);
        }
        if (answer != null) {
            return new Step.End(answer);
        }
        if (holding != null) {
            Answer.Granted begun = holding;
            holding = null;
            if (monotonic.getAsDouble() - due <= Math.max(begun.interval(), Protocol.GRACE)) {
                return new Step.End(begun);
            }
            // Nothing to release: the slot is over.
        }
        return new Step.Ask(Math.min(left(), Protocol.MAX_PERMIT_WAIT));
    }

    private Step sleep(double seconds, Answer otherwise) {
        return seconds > left() ? new Step.End(otherwise) : new Step.Sleep(seconds, null);
    }

    private double left() {
        return Math.max(0, ends - monotonic.getAsDouble());
    }

    static Duration duration(double seconds) {
        return Duration.ofNanos(Math.round(seconds * 1e9));
    }

    static double seconds(Duration duration) {
        return duration.getSeconds() + duration.getNano() / 1e9;
    }
}
