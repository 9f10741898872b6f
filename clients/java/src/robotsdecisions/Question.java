package robotsdecisions;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A question about a page: {@code new Question(url).withPurposes("ai-train")}. What is empty or null is the client's, else the service's.
 *
 * @param agents the crawler to ask as; of several, the first that robots.txt names counts
 * @param purposes what the page is wanted for: search, ai-input, ai-train
 * @param dialect how robots.txt is read, or null
 * @param asOf the instant in the past that a verdict is about, or null
 * @param maxAge how old a copy of robots.txt may be, or null
 * @param enforce whether a page whose site refuses a purpose is disallowed, or null
 * @param explain whether a verdict explains itself in {@code members()}; not in a batch
 * @param acceptSignature the Accept-Signature of a response of the page, which a permit is to be signed by, or null
 */
public record Question(
        String url,
        List<String> agents,
        List<String> purposes,
        String dialect,
        Instant asOf,
        Duration maxAge,
        boolean explain,
        Boolean enforce,
        String acceptSignature) {
    public Question {
        Objects.requireNonNull(url, "url");
        agents = List.copyOf(agents);
        purposes = List.copyOf(purposes);
        if (agents.stream().anyMatch(String::isBlank)) {
            throw new IllegalArgumentException("agent is empty");
        }
        if (maxAge != null && maxAge.isNegative()) {
            throw new IllegalArgumentException("maxAge " + maxAge + " is negative");
        }
    }

    public Question(String url) {
        this(url, List.of(), List.of(), null, null, null, false, null, null);
    }

    /** The page for a crawler, or null for the client's. */
    public Question(String url, String agent) {
        this(url, agent == null ? List.of() : List.of(agent), List.of(), null, null, null, false, null, null);
    }

    public Question withAgents(String... agents) {
        return new Question(url, List.of(agents), purposes, dialect, asOf, maxAge, explain, enforce, acceptSignature);
    }

    public Question withPurposes(String... purposes) {
        return new Question(url, agents, List.of(purposes), dialect, asOf, maxAge, explain, enforce, acceptSignature);
    }

    public Question withEnforce(boolean enforce) {
        return new Question(url, agents, purposes, dialect, asOf, maxAge, explain, enforce, acceptSignature);
    }

    public Question withDialect(String dialect) {
        return new Question(url, agents, purposes, dialect, asOf, maxAge, explain, enforce, acceptSignature);
    }

    public Question withAsOf(Instant asOf) {
        return new Question(url, agents, purposes, dialect, asOf, maxAge, explain, enforce, acceptSignature);
    }

    public Question withMaxAge(Duration maxAge) {
        return new Question(url, agents, purposes, dialect, asOf, maxAge, explain, enforce, acceptSignature);
    }

    public Question withExplain() {
        return new Question(url, agents, purposes, dialect, asOf, maxAge, true, enforce, acceptSignature);
    }

    public Question withAcceptSignature(String acceptSignature) {
        return new Question(url, agents, purposes, dialect, asOf, maxAge, explain, enforce, acceptSignature);
    }

    /** The question with the members of another where it has none. */
    Question over(Question other) {
        return new Question(
                url,
                agents.isEmpty() ? other.agents : agents,
                purposes.isEmpty() ? other.purposes : purposes,
                dialect == null ? other.dialect : dialect,
                asOf == null ? other.asOf : asOf,
                maxAge == null ? other.maxAge : maxAge,
                explain,
                enforce == null ? other.enforce : enforce,
                acceptSignature);
    }

    /** The agent that an answer is about: of several, the one that the service names. */
    String answeredAgent(Map<?, ?> answer) {
        return agents.stream().filter(one -> one.equals(answer.get("agent"))).findFirst().orElse(agents.get(0));
    }

    /** The members of the HTTP API, but {@code url}. */
    Map<String, Object> members() {
        Map<String, Object> members = new LinkedHashMap<>();
        put(members, "agent", oneOrAll(agents));
        put(members, "purpose", oneOrAll(purposes));
        put(members, "enforce", enforce);
        put(members, "dialect", dialect);
        put(members, "as_of", asOf == null ? null : asOf.toString());
        put(members, "max_age", maxAge == null ? null : Conversation.seconds(maxAge));
        put(members, "explain", explain ? true : null);
        return members;
    }

    private static void put(Map<String, Object> members, String name, Object value) {
        if (value != null) {
            members.put(name, value);
        }
    }

    private static Object oneOrAll(List<String> names) {
        return names.isEmpty() ? null : names.size() == 1 ? names.get(0) : names;
    }
}
