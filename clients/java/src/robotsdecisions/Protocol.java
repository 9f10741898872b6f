package robotsdecisions;

import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The protocol of permits and verdicts, without I/O. Answers of the service are not trusted. */
final class Protocol {
    /** Bytes of the longest answer that is read, and of a line of a batch. */
    static final int ANSWER_LIMIT = 4 * 1024 * 1024;

    /** Seconds that the service may take to fetch a robots.txt that is not cached. */
    static final int FETCH_WAIT = 10;

    /** Questions that one request of a batch has. */
    static final int BATCH_ITEMS = 500;

    static final double MAX_PERMIT_WAIT = 3600;

    /** Seconds by which a slot may always be missed: timers are not exact. */
    static final double GRACE = 0.1;

    static final double FIRST_RETRY_DELAY = 0.5;
    static final double LAST_RETRY_DELAY = 30;

    private static final double MIN_DELAY = 0.05;
    private static final double MAX_DELAY = 86_400;
    private static final double MIN_DEFER = 1;
    private static final Set<Integer> REPORTED = Set.of(401, 402, 403, 429, 451, 503);
    private static final Set<Integer> INVALID_QUESTION = Set.of(400, 413, 422);
    private static final Pattern PERMIT = Pattern.compile("[A-Za-z0-9_=-]{1,2048}(?:\\.[A-Za-z0-9_=-]{1,64})?");
    private static final Pattern REASON = Pattern.compile("[a-z_]{1,40}");
    private static final Pattern KEY = Pattern.compile("[!-~]{1,512}");
    private static final Pattern CALLER = Pattern.compile("[A-Za-z0-9._@-]{1,64}");
    private static final Pattern SECONDS = Pattern.compile("[0-9]{1,6}");
    private static final Pattern AUTHORITY = Pattern.compile("([^:/?#]*://)([^/?\\\\]*)");

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

    private Protocol() {}

    /** The URL of the service without a slash at its end. */
    static String checkedService(String service) {
        try {
            URI uri = new URI(service);
            boolean http = "http".equalsIgnoreCase(uri.getScheme()) || "https".equalsIgnoreCase(uri.getScheme());
            if (http && uri.getHost() != null && uri.getRawQuery() == null && uri.getRawFragment() == null) {
                return service.replaceAll("/+$", "");
            }
        } catch (URISyntaxException malformed) {
            // reported below
        }
        throw new IllegalArgumentException(
                "Invalid service URL \"" + service + "\": use http:// or https://, a host, and no query");
    }

    static String checkedKey(String key) {
        if (!KEY.matcher(key).matches()) {
            throw new IllegalArgumentException("malformed API key: use printable ASCII without spaces");
        }
        return key;
    }

    static String checkedCaller(String caller) {
        if (!CALLER.matcher(caller).matches()) {
            throw new IllegalArgumentException(
                    "Invalid caller \"" + caller + "\": use 1 to 64 letters, digits, '.', '_', '@' and '-'");
        }
        return caller;
    }

    /** The URL without credentials and fragment, which do not influence a verdict. */
    static String withoutCredentials(String url) {
        String bare = url.split("#", 2)[0];
        Matcher found = AUTHORITY.matcher(bare);
        if (!found.lookingAt()) {
            return bare;
        }
        String authority = found.group(2);
        return found.group(1) + authority.substring(authority.lastIndexOf('@') + 1) + bare.substring(found.end());
    }

    static String verdictPath(String url, String agent) {
        return "/v1/allowed?url=" + encoded(withoutCredentials(url)) + "&agent=" + encoded(agent) + "&wait=" + FETCH_WAIT;
    }

    /** A line of a batch. */
    static String batchLine(String url, String agent) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("url", withoutCredentials(url));
        members.put("agent", agent);
        members.put("wait", FETCH_WAIT);
        return Json.write(members) + "\n";
    }

    /** The JSON to POST to /v1/permits; {@code caller} may be null. */
    static String question(String url, String agent, double maxWait, String caller) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("url", withoutCredentials(url));
        members.put("agent", agent);
        members.put("max_wait", rounded(Math.min(maxWait, MAX_PERMIT_WAIT)));
        members.put("wait", FETCH_WAIT);
        if (caller != null) {
            members.put("caller", caller);
        }
        return Json.write(members);
    }

    static String outcomePath(Answer.Granted grant) {
        return "/v1/permits/" + encoded(grant.permit()) + "/outcome";
    }

    /** Whether the service should be told that the page answered with this status. */
    static boolean toReport(Answer.Granted grant, int status) {
        return REPORTED.contains(status) || (grant.refused() && status >= 200 && status < 300);
    }

    /** The JSON of an outcome; {@code retryAfter} may be null. */
    static String outcome(int status, String retryAfter, double elapsed) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("status", status);
        members.put("elapsed", rounded(elapsed));
        if (retryAfter != null) {
            members.put("retry_after", retryAfter.substring(0, Math.min(retryAfter.length(), 100)));
        }
        return Json.write(members);
    }

    /** What a response to a question of a permit means, at {@code now}. */
    static Answer answer(Response response, Instant now) {
        Object message = response.message();
        Answer failure = failure(response, message);
        if (failure != null) {
            return failure;
        }
        if (!(message instanceof Map<?, ?> members)) {
            return new Answer.None("its answer is not a JSON object");
        }
        Object verdict = members.get("verdict");
        if ("allow".equals(verdict) && Boolean.TRUE.equals(members.get("allowed"))) {
            return granted(members);
        }
        if ("disallow".equals(verdict)) {
            return new Answer.Denied(reason(members), rule(members), line(members));
        }
        if ("defer".equals(verdict)) {
            Instant at = instant(members.get("retry_at"));
            if (at == null) {
                return new Answer.None("it defers without retry_at");
            }
            return new Answer.Later(secondsUntil(at, response.date(), now), reason(members));
        }
        return new Answer.None("its verdict is " + shown(verdict));
    }

    /** What a response to a question of a verdict means. */
    static Answer verdict(String url, String agent, Response response) {
        Object message = response.message();
        Answer failure = failure(response, message);
        if (failure != null) {
            return failure;
        }
        try {
            return new Answer.Decided(verdictOf(url, agent, message));
        } catch (Json.Malformed malformed) {
            return new Answer.None(malformed.getMessage());
        }
    }

    /** A line of the answer to a batch. */
    static BatchAnswer item(String url, String agent, String line) throws Json.Malformed {
        Object message = Json.parse(line);
        if (message instanceof Map<?, ?> members && members.get("problem") instanceof Map<?, ?> problem) {
            int status = problem.get("status") instanceof Long number && number > 0 && number < 1000 ? number.intValue() : 0;
            Object detail = problem.get("detail");
            return new Unanswered(url, agent, status, text(detail == null ? "it does not say why" : detail));
        }
        return verdictOf(url, agent, message);
    }

    private static Answer failure(Response response, Object message) {
        int status = response.status();
        String retryAfter = response.retryAfter();
        if ((status == 429 || status == 503) && retryAfter != null && SECONDS.matcher(retryAfter).matches()) {
            return new Answer.Later(bounded(Double.parseDouble(retryAfter)), "busy");
        }
        if (status == 200) {
            return null;
        }
        String why = "it answers " + status;
        if (message instanceof Map<?, ?> members && members.get("detail") instanceof String detail) {
            why += ": " + text(detail);
        }
        return INVALID_QUESTION.contains(status) ? new Answer.Invalid(why) : new Answer.None(why);
    }

    private static Answer granted(Map<?, ?> members) {
        Double wait = number(members.get("wait"));
        Double interval = number(members.get("interval"));
        if (members.get("permit") instanceof String permit && wait != null) {
            if (!PERMIT.matcher(permit).matches()) {
                return new Answer.None("its permit is " + shown(permit));
            }
            if (wait > MAX_PERMIT_WAIT) {
                return new Answer.None("its wait is " + wait + " s");
            }
            double lasts = interval == null ? 0 : Math.min(interval, MAX_DELAY);
            return new Answer.Granted(permit, wait, lasts, members.get("edge") instanceof Map<?, ?>);
        }
        Double retryAfter = number(members.get("retry_after"));
        if (members.get("permit") == null && retryAfter != null) {
            return new Answer.Later(bounded(retryAfter), "pace");
        }
        return new Answer.None("it allows the page without a slot or retry_after");
    }

    private static Verdict verdictOf(String url, String agent, Object message) throws Json.Malformed {
        if (!(message instanceof Map<?, ?> members)) {
            throw new Json.Malformed("its answer is not a JSON object", 0);
        }
        Decision decision = null;
        for (Decision one : Decision.values()) {
            if (one.name().toLowerCase(Locale.ROOT).equals(members.get("verdict"))) {
                decision = one;
            }
        }
        if (decision == null || !Boolean.valueOf(decision == Decision.ALLOW).equals(members.get("allowed"))) {
            throw new Json.Malformed(
                    "its verdict is " + shown(members.get("verdict")) + ", and allowed is " + shown(members.get("allowed")), 0);
        }
        Double interval = members.get("rate") instanceof Map<?, ?> rate ? number(rate.get("interval")) : null;
        @SuppressWarnings("unchecked") // Json reads objects with names of type String
        Map<String, Object> all = (Map<String, Object>) members;
        return new Verdict(
                url,
                agent,
                decision,
                reason(members),
                rule(members),
                line(members),
                interval == null ? null : Conversation.duration(Math.min(interval, MAX_DELAY)),
                instant(members.get("retry_at")),
                all);
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

    private static double rounded(double seconds) {
        return Math.round(Math.max(seconds, 0) * 1000) / 1000.0;
    }

    /** Untrusted text for a log: bounded, on one line. */
    private static String text(Object value) {
        String all = String.valueOf(value);
        return all.substring(0, Math.min(all.length(), 300)).replaceAll("[^\\x20-\\x7e\\u00a0-\\ud7ff\\ue000-\\uffff]", "?");
    }

    private static String shown(Object value) {
        if (value instanceof Map || value instanceof List) {
            return value instanceof Map ? "an object" : "an array";
        }
        return text(Json.write(value));
    }

    private static String encoded(String value) {
        return URLEncoder.encode(value, StandardCharsets.UTF_8);
    }
}
