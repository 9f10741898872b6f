package robotsdecisions;

import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** What answers of the service mean. They are not trusted. */
final class Answers {
    /** Bytes of the longest answer that is read, and of a line of a batch. */
    static final int ANSWER_LIMIT = 4 * 1024 * 1024;

    static final double MAX_PERMIT_WAIT = 3600;
    static final double MAX_DELAY = 86_400;

    private static final double MIN_DELAY = 0.05;
    private static final double MIN_DEFER = 1;

    /** Seconds until the next request after a 429 that names no time. */
    private static final double QUOTA_DELAY = 30;

    private static final String SET_KEY = "Set `key` to an API key of the service.";
    private static final String SET_URL = "Set the URL of a robots.txt decision service, without a path such as /v1.";
    private static final Set<Integer> INVALID_QUESTION = Set.of(400, 413, 422);

    /** The problem of an {@code asOf} at which no version was stored. */
    private static final String NO_VERSION = "urn:robots-decisions:problem:no-version";

    /** The problem of a key that may not sign, whose sentence says what to do. */
    private static final String MAY_NOT_SIGN = "urn:robots-decisions:problem:may-not-sign";
    private static final Pattern PERMIT = Pattern.compile("[A-Za-z0-9_=-]{1,2048}(?:\\.[A-Za-z0-9_=-]{1,64})?");
    private static final Pattern REASON = Pattern.compile("[a-z_]{1,40}");
    private static final Pattern VERSION = Pattern.compile("[!-~]{1,128}");
    private static final Pattern SECONDS = Pattern.compile("[0-9]{1,6}");

    /** A whole response of the service; {@code retryAfter} and {@code date} are headers, or null. */
    record Response(int status, String retryAfter, String date, byte[] body) {
        Object message() {
            try {
                return Json.parse(new String(body, StandardCharsets.UTF_8));
            } catch (Json.Malformed malformed) {
                return null;
            }
        }
    }

    private Answers() {}

    /** An answer that no robots.txt decision service gives. */
    static Answer.None notOurs(String what) {
        return new Answer.None("answers with " + what + ".", SET_URL);
    }

    /** Without HTTP, without TLS, or with a certificate that is not trusted, something else answers. */
    static Answer.None notHttp(String why) {
        return new Answer.None("does not answer in HTTP with a trusted certificate: " + why + ".", SET_URL);
    }

    /** What a response to a question of a permit means, at {@code now}. */
    static Answer permit(Response response, Instant now) {
        Object message = response.message();
        Answer failure = failure(response, message);
        if (failure != null) {
            return failure;
        }
        String wrong = notVerdict(message);
        if (wrong != null) {
            return notOurs(wrong);
        }
        Map<?, ?> members = (Map<?, ?>) message;
        switch (decision(members)) {
            case ALLOW:
                return granted(members);
            case DISALLOW:
                return new Answer.Denied(reason(members), rule(members), line(members), summary(members));
            default:
                Instant at = instant(members.get("retry_at"));
                return at == null
                        ? notOurs("a defer without retry_at")
                        : new Answer.Later(secondsUntil(at, response.date(), now), reason(members), summary(members));
        }
    }

    /** What a response to a question of a verdict means. */
    static Answer verdict(Question question, Response response) {
        Object message = response.message();
        Answer failure = failure(response, message);
        return failure == null ? verdictOf(question, message) : failure;
    }

    /** What a line of the answer to a batch means: Decided, or None. */
    static Answer item(Question question, String line) {
        Object message = null;
        try {
            message = Json.parse(line);
        } catch (Json.Malformed malformed) {
            // not an object
        }
        if (message instanceof Map<?, ?> members && members.get("problem") instanceof Map<?, ?> problem) {
            int status = problem.get("status") instanceof Long number && number > 0 && number < 1000 ? number.intValue() : 0;
            Object detail = problem.get("detail");
            String why = text(detail == null ? "the service does not say why" : detail);
            Double retryAfter = number(problem.get("retry_after"));
            return new Answer.Decided(new Unanswered(
                    question.url(),
                    question.answeredAgent(members),
                    status,
                    why,
                    retryAfter == null ? null : Conversation.duration(bounded(retryAfter))));
        }
        return verdictOf(question, message);
    }

    /** Why a response to a batch has no lines, or null. */
    static Answer refusal(Response response) {
        return failure(response, response.message());
    }

    private static Answer failure(Response response, Object message) {
        int status = response.status();
        if (status == 200) {
            return null;
        }
        Map<?, ?> problem = message instanceof Map<?, ?> members && members.get("detail") instanceof String ? members : null;
        String detail = problem == null ? "." : ": " + sentence((String) problem.get("detail"));
        String said = "answers " + status + detail;
        String retryAfter = response.retryAfter();
        boolean seconds = retryAfter != null && SECONDS.matcher(retryAfter).matches();
        if (status == 429 || (status == 503 && seconds)) {
            return new Answer.Later(seconds ? bounded(Double.parseDouble(retryAfter)) : QUOTA_DELAY, Answer.Later.BUSY, said);
        }
        if (problem != null && (INVALID_QUESTION.contains(status) || NO_VERSION.equals(problem.get("type")))) {
            return new Answer.Invalid(status + detail);
        }
        if (problem != null && MAY_NOT_SIGN.equals(problem.get("type"))) {
            return new Answer.None(said, "");
        }
        return new Answer.None(said, status >= 500 ? null : status == 401 || status == 403 ? SET_KEY : SET_URL);
    }

    private static Answer granted(Map<?, ?> members) {
        Double wait = number(members.get("wait"));
        Double interval = number(members.get("interval"));
        if (members.get("permit") instanceof String permit && wait != null) {
            if (!PERMIT.matcher(permit).matches()) {
                return notOurs("the permit " + shown(permit));
            }
            if (wait > MAX_PERMIT_WAIT) {
                return notOurs("a slot in " + wait + " s");
            }
            double lasts = interval == null ? 0 : Math.min(interval, MAX_DELAY);
            return new Answer.Granted(permit, wait, lasts, members.get("edge") instanceof Map<?, ?>, version(members), Signatures.of(members));
        }
        Double retryAfter = number(members.get("retry_after"));
        if (members.get("permit") == null && retryAfter != null) {
            String taken = "the slots of the site are taken until then.";
            return new Answer.Later(bounded(retryAfter), Answer.Later.PACE, taken);
        }
        return notOurs("an allow without a slot or retry_after");
    }

    private static Answer verdictOf(Question question, Object message) {
        String wrong = notVerdict(message);
        if (wrong != null) {
            return notOurs(wrong);
        }
        @SuppressWarnings("unchecked") // Json reads objects with names of type String
        Map<String, Object> members = (Map<String, Object>) message;
        Double interval = members.get("rate") instanceof Map<?, ?> rate ? number(rate.get("interval")) : null;
        return new Answer.Decided(new Verdict(
                question.url(),
                question.answeredAgent(members),
                decision(members),
                reason(members),
                rule(members),
                line(members),
                summary(members),
                interval == null ? null : Conversation.duration(Math.min(interval, MAX_DELAY)),
                instant(members.get("retry_at")),
                version(members),
                members));
    }

    /** Why a message has no verdict, or null. */
    private static String notVerdict(Object message) {
        if (!(message instanceof Map<?, ?> members)) {
            return "what is not a JSON object";
        }
        Decision decision = decision(members);
        if (decision != null && Boolean.valueOf(decision == Decision.ALLOW).equals(members.get("allowed"))) {
            return null;
        }
        return "the verdict " + shown(members.get("verdict")) + ", and " + shown(members.get("allowed")) + " for allowed";
    }

    private static Decision decision(Map<?, ?> members) {
        for (Decision one : Decision.values()) {
            if (one.name().toLowerCase(Locale.ROOT).equals(members.get("verdict"))) {
                return one;
            }
        }
        return null;
    }

    /** The service's own sentence, or what is known without it. */
    private static String summary(Map<?, ?> members) {
        if (members.get("explanation") instanceof Map<?, ?> explanation
                && explanation.get("summary") instanceof String summary && !summary.isEmpty()) {
            return sentence(summary);
        }
        String rule = rule(members);
        return rule == null ? reason(members) + "." : "line " + line(members) + " of robots.txt: " + rule + ".";
    }

    private static double secondsUntil(Instant at, String date, Instant now) {
        Instant theirs = now;
        if (date != null && date.length() <= 64) {
            try {
                theirs = ZonedDateTime.parse(date, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
            } catch (DateTimeException malformed) {
                // our clock has to do
            }
        }
        double seconds = at.getEpochSecond() - theirs.getEpochSecond() + (at.getNano() - theirs.getNano()) / 1e9;
        return Math.max(MIN_DEFER, bounded(seconds));
    }

    private static Instant instant(Object value) {
        if (!(value instanceof String text) || text.length() > 64) {
            return null;
        }
        try {
            return OffsetDateTime.parse(text).toInstant();
        } catch (DateTimeException malformed) {
            return null;
        }
    }

    private static String rule(Map<?, ?> members) {
        return members.get("rule") instanceof Map<?, ?> rule ? text(rule.get("directive")) + ": " + text(rule.get("pattern")) : null;
    }

    private static Integer line(Map<?, ?> members) {
        boolean has = members.get("rule") instanceof Map<?, ?> rule && rule.get("line") instanceof Long;
        long line = has ? (Long) ((Map<?, ?>) members.get("rule")).get("line") : 0;
        return line > 0 && line <= Integer.MAX_VALUE ? Integer.valueOf((int) line) : null;
    }

    private static String reason(Map<?, ?> members) {
        return members.get("reason") instanceof String reason && REASON.matcher(reason).matches() ? reason : "unknown";
    }

    private static String version(Map<?, ?> members) {
        return members.get("version") instanceof String version && VERSION.matcher(version).matches() ? version : null;
    }

    private static Double number(Object value) {
        if (!(value instanceof Number)) {
            return null;
        }
        double number = ((Number) value).doubleValue();
        return Double.isFinite(number) && number >= 0 ? number : null;
    }

    private static double bounded(double seconds) {
        return Math.min(Math.max(seconds, MIN_DELAY), MAX_DELAY);
    }

    /** Untrusted text for a log: bounded, on one line. */
    static String text(Object value) {
        String all = String.valueOf(value);
        return all.substring(0, Math.min(all.length(), 300)).replaceAll("[^\\x20-\\x7e\\u00a0-\\ud7ff\\ue000-\\uffff]", "?");
    }

    private static String sentence(String said) {
        return text(said).strip().replaceFirst("[^.!?]$", "$0.");
    }

    private static String shown(Object value) {
        if (value instanceof Map || value instanceof List) {
            return value instanceof Map ? "an object" : "an array";
        }
        return text(Json.write(value));
    }
}
