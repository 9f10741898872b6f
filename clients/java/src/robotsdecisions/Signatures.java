package robotsdecisions;

import java.net.http.HttpRequest;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;

/** The header fields of a request that the service signed. */
final class Signatures {
    /** Those of a signature. They hold for one request, and what follows redirects carries them to the next host. */
    private static final Set<String> FIELDS = Set.of("signature-agent", "signature-input", "signature");

    private static final Set<String> SENT_WITH_IT =
            Set.of("signature-agent", "signature-input", "signature", "user-agent", "from");
    private static final Pattern VALUE = Pattern.compile("[!-~](?:[ -~]{0,4094}[!-~])?");

    private Signatures() {}

    /** The fields in the answer of a permit; null without a signature, or if it cannot be sent with a GET. */
    static Map<String, String> of(Map<?, ?> members) {
        if (!(members.get("signed") instanceof Map<?, ?> signed)
                || !"GET".equals(signed.get("method"))
                || !(signed.get("headers") instanceof Map<?, ?> headers)) {
            return null;
        }
        Map<String, String> fields = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (Map.Entry<?, ?> header : headers.entrySet()) {
            if (!(header.getValue() instanceof String value) || !VALUE.matcher(value).matches()) {
                return null;
            }
            fields.put((String) header.getKey(), value);
        }
        boolean known = fields.keySet().stream().allMatch(name -> SENT_WITH_IT.contains(lower(name)));
        return known && fields.keySet().containsAll(FIELDS) ? Collections.unmodifiableMap(fields) : null;
    }

    /** The request with the fields of a signature in place of its own; {@code signed} may be null. */
    static HttpRequest sign(HttpRequest request, Map<String, String> signed) {
        Map<String, String> set = signed == null || !request.method().equals("GET") ? Map.of() : signed;
        HttpRequest.Builder builder = HttpRequest.newBuilder(
                request, (name, value) -> !FIELDS.contains(lower(name)) && !(!set.isEmpty() && set.containsKey(name)));
        set.forEach(builder::setHeader);
        return builder.build();
    }

    private static String lower(String name) {
        return name.toLowerCase(java.util.Locale.ROOT);
    }
}
