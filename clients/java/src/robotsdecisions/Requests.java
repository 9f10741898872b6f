package robotsdecisions;

import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What is sent to the service, without I/O. */
final class Requests {
    /** Seconds that the service may take to fetch a robots.txt that is not cached. */
    private static final double FETCH_WAIT = 10;

    /** Most seconds for an answer, and for each line of a batch; and least, however little a call may wait. */
    private static final double ANSWER_TIMEOUT = 15;
    private static final double MIN_ANSWER_TIMEOUT = 1;

    /** Seconds for the report of an outcome, which is lost after that. */
    static final double OUTCOME_TIMEOUT = 5;

    /** Questions that one request of a batch has. */
    static final int BATCH_ITEMS = 500;

    static final Map<String, Object> RELEASED = Map.of("released", true);

    private static final int PAYMENT_REQUIRED = 402;
    private static final int PRICE_CHARS = 100;
    private static final Pattern PRINTABLE = Pattern.compile("[ -~]+");
    private static final Set<Integer> REPORTED = Set.of(401, 402, 403, 429, 451, 503);
    private static final Pattern KEY = Pattern.compile("[!-~]{1,512}");
    private static final Pattern CALLER = Pattern.compile("[A-Za-z0-9._@-]{1,64}");
    private static final Pattern AUTHORITY = Pattern.compile("([^:/?#]*://)([^/?\\\\]*)");

    private Requests() {}

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

    /** Scheme and authority of a URL. */
    static String origin(String url) {
        Matcher found = AUTHORITY.matcher(withoutCredentials(url));
        return (found.lookingAt() ? found.group() : url).toLowerCase(Locale.ROOT);
    }

    /** The host of a URL: its pages share a pace. */
    static String site(String url) {
        return origin(url).replaceFirst("^[^:]*://", "").replaceFirst(":[0-9]*$", "");
    }

    /** Seconds for an answer to a call that may wait for {@code left} more. */
    static double answerTimeout(double left) {
        return Math.min(Math.max(left, MIN_ANSWER_TIMEOUT), ANSWER_TIMEOUT);
    }

    static String verdictPath(Question question, double left) {
        List<String> pairs = new ArrayList<>();
        members(question, left).forEach((name, value) -> {
            List<?> values = value instanceof List<?> several ? several : List.of(value);
            values.forEach(one -> pairs.add(name + "=" + encoded(one instanceof Double number ? shortened(number) : one.toString())));
        });
        return "/v1/allowed?" + String.join("&", pairs);
    }

    /** A line of a batch. */
    static String batchLine(Question question, double left) {
        return Json.write(members(question, left)) + "\n";
    }

    /** The JSON to POST to /v1/permits. */
    static String permitQuestion(Question question, double left, String caller, boolean sign) {
        Map<String, Object> members = members(question, left);
        members.put("max_wait", rounded(left));
        members.put("caller", caller);
        if (sign) {
            members.put("sign", true);
        }
        if (question.acceptSignature() != null) {
            members.put("accept_signature", question.acceptSignature());
        }
        return Json.write(members);
    }

    /** The service has two thirds of the time of an answer for a fetch. */
    private static Map<String, Object> members(Question question, double left) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("url", withoutCredentials(question.url()));
        members.putAll(question.members());
        members.put("wait", rounded(answerTimeout(left) * FETCH_WAIT / ANSWER_TIMEOUT));
        return members;
    }

    static String outcomePath(Answer.Granted grant) {
        return "/v1/permits/" + encoded(grant.permit()) + "/outcome";
    }

    /** Whether the fleet has to know at once that the page answered with this status. */
    static boolean isUrgent(Answer.Granted grant, int status) {
        return REPORTED.contains(status) || (grant.refused() && status >= 200 && status < 300);
    }

    /**
     * The members of an outcome; {@code retryAfter} may be null, and so may {@code price}: what a 402 asks for the page {@code url} by
     * its header crawler-price.
     */
    static Map<String, Object> outcome(int status, String retryAfter, double elapsed, String price, String url) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("status", status);
        members.put("elapsed", rounded(elapsed));
        String asked = price == null || status != PAYMENT_REQUIRED ? "" : price.strip();
        asked = asked.substring(0, Math.min(asked.length(), PRICE_CHARS));
        if (PRINTABLE.matcher(asked).matches()) {
            members.put("price", asked);
            members.put("url", withoutCredentials(url));
        }
        if (retryAfter != null) {
            members.put("retry_after", retryAfter.substring(0, Math.min(retryAfter.length(), 100)));
        }
        return members;
    }

    private static double rounded(double seconds) {
        return Math.round(Math.max(seconds, 0) * 1000) / 1000.0;
    }

    private static String shortened(double number) {
        return number == Math.rint(number) ? Long.toString((long) number) : Double.toString(number);
    }

    private static String encoded(String value) {
        return URLEncoder.encode(value, StandardCharsets.UTF_8);
    }
}
