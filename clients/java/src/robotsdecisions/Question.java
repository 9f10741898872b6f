package robotsdecisions;

import java.util.Objects;

/**
 * A question of a batch.
 *
 * @param agent the crawler to ask as, or null for the client's
 */
public record Question(String url, String agent) {
    public Question {
        Objects.requireNonNull(url, "url");
    }

    public Question(String url) {
        this(url, null);
    }
}
