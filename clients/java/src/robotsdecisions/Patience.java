package robotsdecisions;

import java.util.OptionalDouble;
import java.util.function.DoubleSupplier;

/** How long a call waits: at most {@code maxWait} seconds, also for a service that is silent if {@code retry}. */
final class Patience {
    private static final double FIRST_RETRY_DELAY = 0.5;
    private static final double LAST_RETRY_DELAY = 30;

    private final DoubleSupplier monotonic;
    private final boolean retry;
    private final double ends;
    private double pause = FIRST_RETRY_DELAY;

    Patience(double maxWait, boolean retry, DoubleSupplier monotonic) {
        this.monotonic = monotonic;
        this.retry = retry;
        this.ends = monotonic.getAsDouble() + maxWait;
    }

    double left() {
        return Math.max(0, ends - monotonic.getAsDouble());
    }

    /** Seconds to wait before the service is asked again; empty to give up. */
    OptionalDouble after(Answer answer) {
        double seconds;
        if (answer instanceof Answer.Later later) {
            seconds = later.seconds();
        } else if (answer instanceof Answer.None none && none.silent() && retry) {
            seconds = pause;
            pause = Math.min(pause * 2, LAST_RETRY_DELAY);
        } else {
            return OptionalDouble.empty();
        }
        return seconds <= left() ? OptionalDouble.of(seconds) : OptionalDouble.empty();
    }
}
