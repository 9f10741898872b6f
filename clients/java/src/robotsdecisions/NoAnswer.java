package robotsdecisions;

import java.net.ProtocolException;
import java.util.Locale;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLPeerUnverifiedException;

/** An exchange that ended without an answer. */
final class NoAnswer extends Exception {
    private static final long serialVersionUID = 1;

    private final transient Answer.None answer;

    private NoAnswer(Answer.None answer, Throwable cause) {
        super(answer.sentence(), cause);
        this.answer = answer;
    }

    Answer.None answer() {
        return answer;
    }

    static NoAnswer timedOut(double seconds) {
        return silent("does not respond within " + shortened(seconds) + " s.", null);
    }

    static NoAnswer silent(String sentence, Throwable cause) {
        return new NoAnswer(new Answer.None(sentence, null), cause);
    }

    /** What no robots.txt decision service answers. */
    static NoAnswer notOurs(String what) {
        return new NoAnswer(Answers.notOurs(what), null);
    }

    /** Why an exchange failed. Without TLS, with another's certificate, or without HTTP, something else answers. */
    static NoAnswer of(Throwable cause) {
        String why = Answers.text(why(cause));
        if (cause instanceof ProtocolException || cause instanceof SSLPeerUnverifiedException
                || (cause instanceof SSLHandshakeException && !why.contains("terminated"))) {
            return new NoAnswer(Answers.notHttp(why), cause);
        }
        return silent("cannot be reached: " + why + ".", cause);
    }

    /** The first message of a failure and its causes, or their names. */
    private static String why(Throwable failure) {
        StringBuilder names = new StringBuilder();
        for (Throwable one = failure; one != null; one = one.getCause()) {
            if (one.getMessage() != null) {
                return one.getMessage();
            }
            names.append(names.isEmpty() ? "" : ", ").append(one.getClass().getSimpleName());
        }
        return names.toString();
    }

    static String shortened(double seconds) {
        return String.format(Locale.ROOT, "%.3f", seconds).replaceFirst("\\.?0+$", "");
    }
}
