package robotsdecisions;

import java.io.IOException;
import java.net.http.HttpClient;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** Asks the service. It may be shared by threads. An interrupted wait releases its slot. */
public final class Client {
    private static final System.Logger LOG = System.getLogger(Client.class.getName());

    /** Tells the service of slots whose thread was interrupted, and cannot wait itself. */
    private static final ExecutorService RELEASES = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "robots-decisions-release");
        thread.setDaemon(true);
        return thread;
    });

    @FunctionalInterface
    private interface Ask {
        Answer ask(double maxWait) throws InterruptedException;
    }

    private final Service service;
    private final String agent;
    private final String caller;
    private final Duration maxWait;
    private final Unreachable unreachable;

    private Client(Builder builder) {
        HttpClient http = builder.http != null
                ? builder.http
                : HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(Service.ANSWER_TIMEOUT)).build();
        this.service = new Service(builder.service, builder.key, http);
        this.agent = builder.agent;
        this.caller = builder.caller;
        this.maxWait = builder.maxWait;
        this.unreachable = builder.unreachable;
    }

    /** A client of the service at this URL. Throws IllegalArgumentException for an invalid one. */
    public static Builder builder(String service) {
        return new Builder(service);
    }

    /** The verdict on a page. It reserves no slot. */
    public Verdict allowed(String url) throws PermitException, InterruptedException {
        return allowed(url, agent);
    }

    public Verdict allowed(String url, String agent) throws PermitException, InterruptedException {
        String path = Protocol.verdictPath(url, checkedAgent(url, agent));
        Answer answer = converse(maxWait, left -> response(path, null, response -> Protocol.verdict(url, agent, response)));
        if (answer instanceof Answer.Decided decided) {
            return decided.verdict();
        }
        throw PermitException.of(url, answer);
    }

    /**
     * The verdicts on any number of pages, in their order and read as they are taken; close the stream, unless it is read to
     * its end. A question without a verdict fails alone. If the service fails, the stream throws an UncheckedIOException with
     * a ServiceUnavailableException.
     */
    public Stream<BatchAnswer> batch(Stream<Question> questions) {
        Batch batch = new Batch(service, agent, questions.iterator());
        return StreamSupport.stream(batch, false).onClose(batch::close).onClose(questions::close);
    }

    /** Wait for the slot of a page. */
    public Permit permit(String url) throws PermitException, InterruptedException {
        return permit(url, agent, maxWait);
    }

    public Permit permit(String url, String agent, Duration maxWait) throws PermitException, InterruptedException {
        String asked = checkedAgent(url, agent);
        Answer answer = converse(checkedWait(maxWait), left -> response(
                "/v1/permits",
                Protocol.question(url, asked, left, caller),
                response -> Protocol.answer(response, Instant.now())));
        if (answer instanceof Answer.Granted granted) {
            return new Permit(this, granted);
        }
        if (answer instanceof Answer.None none && unreachable == Unreachable.ALLOW) {
            LOG.log(System.Logger.Level.WARNING, "fetching {0} without a permit: {1}", url, none.why());
            return new Permit(this, null);
        }
        throw PermitException.of(url, answer);
    }

    /** Report an outcome. If the service cannot be reached, it is lost. */
    void outcome(Answer.Granted grant, String content) {
        try {
            service.request(Protocol.outcomePath(grant), content, Service.OUTCOME_TIMEOUT);
        } catch (IOException lost) {
            LOG.log(System.Logger.Level.DEBUG, "an outcome is lost: {0}", lost.getMessage());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    static String checkedAgent(String url, String agent) throws NotUnderstoodException {
        Objects.requireNonNull(url, "url");
        if (agent == null || agent.isBlank()) {
            throw new NotUnderstoodException(url + " has no agent: set the agent of the client.");
        }
        return agent;
    }

    private Answer converse(Duration maxWait, Ask service) throws InterruptedException {
        Conversation conversation = new Conversation(
                Conversation.seconds(maxWait), unreachable == Unreachable.WAIT, () -> System.nanoTime() / 1e9);
        Answer answer = null;
        while (true) {
            Conversation.Step step = conversation.next(answer);
            if (step instanceof Conversation.Step.End end) {
                return end.answer();
            } else if (step instanceof Conversation.Step.Ask ask) {
                answer = service.ask(ask.maxWait());
            } else if (step instanceof Conversation.Step.Sleep sleep) {
                answer = null;
                sleep(sleep);
            }
        }
    }

    private void sleep(Conversation.Step.Sleep step) throws InterruptedException {
        try {
            long until = System.nanoTime() + Math.round(step.seconds() * 1e9);
            for (long left = until - System.nanoTime(); left > 0; left = until - System.nanoTime()) {
                Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
            }
        } catch (InterruptedException interrupted) {
            if (step.holding() != null) {
                RELEASES.execute(() -> outcome(step.holding(), Permit.RELEASED));
            }
            throw interrupted;
        }
    }

    private Answer response(String path, String content, Function<Protocol.Response, Answer> meaning)
            throws InterruptedException {
        try {
            return meaning.apply(service.request(path, content, Service.ANSWER_TIMEOUT));
        } catch (IOException failed) {
            return new Answer.None(failed.getMessage());
        }
    }

    private static Duration checkedWait(Duration maxWait) {
        if (maxWait.isNegative() || maxWait.compareTo(Duration.ofDays(365)) > 0) {
            throw new IllegalArgumentException("maxWait " + maxWait + " is not between 0 and 365 days");
        }
        return maxWait;
    }

    /** The settings of a client. Each throws IllegalArgumentException for an invalid value. */
    public static final class Builder {
        private final String service;
        private String key;
        private String agent;
        private String caller;
        private Duration maxWait = Duration.ofSeconds(60);
        private Unreachable unreachable = Unreachable.FAIL;
        private HttpClient http;

        private Builder(String service) {
            this.service = Protocol.checkedService(service);
        }

        /** The API key. */
        public Builder key(String key) {
            this.key = Protocol.checkedKey(key);
            return this;
        }

        /** The crawler to ask as, unless a call names another. */
        public Builder agent(String agent) {
            if (agent.isBlank()) {
                throw new IllegalArgumentException("agent is empty");
            }
            this.agent = agent;
            return this;
        }

        /** Who shares an origin's slots fairly with others: by default the id of the key, else the address. */
        public Builder caller(String caller) {
            this.caller = Protocol.checkedCaller(caller);
            return this;
        }

        /** How long to wait for a slot, or for a verdict that is deferred or busy: 60 s. */
        public Builder maxWait(Duration maxWait) {
            this.maxWait = checkedWait(maxWait);
            return this;
        }

        /** What happens while the service cannot be reached: FAIL. */
        public Builder unreachable(Unreachable unreachable) {
            this.unreachable = Objects.requireNonNull(unreachable, "unreachable");
            return this;
        }

        /** What sends the requests: by default an HttpClient of its own. */
        public Builder http(HttpClient http) {
            this.http = Objects.requireNonNull(http, "http");
            return this;
        }

        public Client build() {
            return new Client(this);
        }
    }
}
