package robotsdecisions.crawlers;

import crawlercommons.robots.BaseRobotRules;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.URL;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;
import robotsdecisions.Client;
import robotsdecisions.Decision;
import robotsdecisions.NotUnderstoodException;
import robotsdecisions.PermitException;
import robotsdecisions.Verdict;

/**
 * The rules for one page of a crawler that uses crawler-commons. The service is asked when the first of them is needed.
 *
 * <p>Without a verdict they throw UncheckedIOException, so that the crawler retries the page later. A page that the service
 * rejects as malformed is not allowed.
 */
public final class ServiceRules extends BaseRobotRules {
    private static final long serialVersionUID = 1;

    private final transient Client client;
    private final String url;
    private transient Verdict verdict;
    private transient boolean rejected;

    public ServiceRules(Client client, String url) {
        this.client = client;
        this.url = url;
    }

    /**
     * The client that a crawler's settings describe: {@code robots.decisions.url}, {@code .key}, {@code .caller} and {@code
     * .max.wait} (seconds), and {@code http.agent.name}.
     */
    public static Client client(Function<String, Object> settings) {
        Object service = settings.apply("robots.decisions.url");
        Object agent = settings.apply("http.agent.name");
        if (service == null || agent == null) {
            throw new IllegalArgumentException("set robots.decisions.url and http.agent.name");
        }
        Client.Builder builder = Client.builder(service.toString()).agent(agent.toString());
        Object key = settings.apply("robots.decisions.key");
        if (key != null) {
            builder.key(key.toString());
        }
        Object caller = settings.apply("robots.decisions.caller");
        if (caller != null) {
            builder.caller(caller.toString());
        }
        Object wait = settings.apply("robots.decisions.max.wait");
        if (wait != null) {
            builder.maxWait(seconds(wait.toString()));
        }
        return builder.build();
    }

    private static Duration seconds(String value) {
        try {
            return Duration.ofSeconds(Long.parseLong(value));
        } catch (NumberFormatException malformed) {
            throw new IllegalArgumentException("robots.decisions.max.wait=" + value + " is not a number of seconds");
        }
    }

    @Override
    public boolean isAllowed(String page) {
        ServiceRules rules = page.equals(url) ? this : new ServiceRules(client, page);
        Verdict decided = rules.verdict();
        if (decided != null && decided.decision() == Decision.DEFER) {
            throw new UncheckedIOException(new IOException(
                    page + " may not be fetched before " + decided.retryAt() + ": " + decided.reason()));
        }
        return decided != null && decided.allowed();
    }

    /** Declared by crawler-commons since 1.4. */
    public boolean isAllowed(URL page) {
        return isAllowed(page.toString());
    }

    @Override
    public boolean isAllowAll() {
        return false;
    }

    @Override
    public boolean isAllowNone() {
        return false;
    }

    /** Whether to ask again later. Nutch puts such a page back into its queue. */
    @Override
    public boolean isDeferVisits() {
        Verdict decided = verdict();
        return decided != null && decided.decision() == Decision.DEFER;
    }

    /** Milliseconds from one page to the next. */
    @Override
    public long getCrawlDelay() {
        Verdict decided = verdict();
        return decided == null || decided.interval() == null ? UNSET_CRAWL_DELAY : decided.interval().toMillis();
    }

    @Override
    public List<String> getSitemaps() {
        Verdict decided = verdict();
        Object named = decided == null ? null : decided.members().get("sitemaps");
        return named instanceof List<?> sitemaps
                ? sitemaps.stream().filter(String.class::isInstance).map(String.class::cast).toList()
                : List.of();
    }

    @Override
    public boolean equals(Object other) {
        return other == this;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }

    /** The verdict on the page, or null if the service rejects it. */
    private synchronized Verdict verdict() {
        if (verdict == null && !rejected) {
            try {
                verdict = client.allowed(url);
            } catch (NotUnderstoodException malformed) {
                rejected = true;
            } catch (PermitException unknown) {
                throw new UncheckedIOException(unknown);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new UncheckedIOException(new InterruptedIOException("interrupted while asking about " + url));
            }
        }
        return verdict;
    }
}
