package robotsdecisions;

import java.net.http.HttpClient;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** Asks the service. It may be shared by threads. An interrupted wait releases its slot. Closing it sends the last outcomes. */
public final class Client implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(Client.class.getName());

    /** The caller of all clients of this process that name none: slots are shared fairly between names, and a name keeps its turn. */
    private static final String PROCESS = "process-" + UUID.randomUUID();

    /** Seconds. */
    private static final long CONNECT_TIMEOUT = 15;

    /** Tells the service what no caller waits for: slots of interrupted threads, and outcomes that were collected. */
    private static final ExecutorService REPORTS = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "robots-decisions-report");
        thread.setDaemon(true);
        return thread;
    });

    @FunctionalInterface
    private interface Ask {
        Answer ask(double left) throws NoAnswer, InterruptedException;
    }

    private final Service service;
    private final Question defaults;
    private final String caller;
    private final Duration maxWait;
    private final Unreachable unreachable;
    private final boolean sign;
    private final Waits waits;
    private final LocalPace pace = new LocalPace();
    private final Outcomes outcomes = new Outcomes(items -> reported("/v1/permits/outcomes", items), REPORTS);

    private Client(Builder builder) {
        HttpClient http = builder.http != null
                ? builder.http
                : HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(CONNECT_TIMEOUT)).build();
        this.service = new Service(builder.service, builder.key, http);
        this.defaults = builder.defaults;
        this.caller = builder.caller;
        this.maxWait = builder.maxWait;
        this.unreachable = builder.unreachable;
        this.sign = builder.sign;
        this.waits = new Waits(builder.service, unreachable == Unreachable.ALLOW);
    }

    /** A client of the service at this URL. Throws IllegalArgumentException for an invalid one. */
    public static Builder builder(String service) {
        return new Builder(service);
    }

    /** The verdict on a page. It reserves no slot. */
    public Verdict allowed(String url) throws PermitException, InterruptedException {
        return allowed(new Question(url));
    }

    public Verdict allowed(String url, String agent) throws PermitException, InterruptedException {
        return allowed(new Question(url, agent));
    }

    public Verdict allowed(Question question) throws PermitException, InterruptedException {
        Question asked = completed(question);
        Answer answer = converse(asked.url(), maxWait, left -> Answers.verdict(
                asked, service.request(Requests.verdictPath(asked, left), null, Requests.answerTimeout(left))));
        if (answer instanceof Answer.Decided decided && decided.verdict() instanceof Verdict verdict) {
            return verdict;
        }
        throw PermitException.of(asked.url(), service.url(), answer);
    }

    /**
     * The verdicts on any number of pages, in their order and read as they are taken; close the stream, unless it is read to
     * its end. A question without a verdict fails alone. While the service is busy, or silent with WAIT, questions that are left are
     * asked again. If the service fails, the stream throws an UncheckedIOException with a PermitException.
     */
    public Stream<BatchAnswer> batch(Stream<Question> questions) {
        Batch batch = new Batch(this, questions.iterator());
        return StreamSupport.stream(batch, false).onClose(batch::close).onClose(questions::close);
    }

    /** Wait for the slot of a page. */
    public Permit permit(String url) throws PermitException, InterruptedException {
        return permit(new Question(url), maxWait);
    }

    public Permit permit(String url, String agent, Duration maxWait) throws PermitException, InterruptedException {
        return permit(new Question(url, agent), maxWait);
    }

    public Permit permit(Question question) throws PermitException, InterruptedException {
        return permit(question, maxWait);
    }

    public Permit permit(Question question, Duration maxWait) throws PermitException, InterruptedException {
        Question asked = completed(question);
        if (asked.asOf() != null || asked.explain()) {
            throw new IllegalArgumentException("a permit is for now: asOf and explain are for verdicts");
        }
        double ends = now() + Conversation.seconds(checkedWait(maxWait));
        Answer answer = converse(asked.url(), maxWait, left -> Answers.permit(
                service.request("/v1/permits", Requests.permitQuestion(asked, left, caller, sign), Requests.answerTimeout(left)),
                Instant.now()));
        if (answer instanceof Answer.Granted granted) {
            pace.learn(asked.url(), granted.interval(), now());
            return new Permit(this, asked.url(), granted);
        }
        if (answer instanceof Answer.None none && none.silent() && unreachable == Unreachable.ALLOW) {
            return open(asked.url(), none, Math.max(0, ends - now()));
        }
        throw PermitException.of(asked.url(), service.url(), answer);
    }

    /** Send the outcomes that wait for others. */
    @Override
    public void close() {
        outcomes.flush();
    }

    /** Report an outcome. If the service cannot be reached, it is lost. */
    void outcome(Answer.Granted grant, Map<String, Object> outcome) {
        reported(Requests.outcomePath(grant), Json.write(outcome));
    }

    Outcomes outcomes() {
        return outcomes;
    }

    private boolean reported(String path, String content) {
        try {
            return service.request(path, content, Requests.OUTCOME_TIMEOUT).status() == 200;
        } catch (NoAnswer lost) {
            LOG.log(System.Logger.Level.DEBUG, "an outcome is lost: {0} {1}", service.url(), lost.getMessage());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return false;
    }

    /** The question with the client's agent and other defaults. */
    Question completed(Question question) throws NotUnderstoodException {
        Question asked = question.over(defaults);
        if (asked.agents().isEmpty()) {
            throw new NotUnderstoodException(question.url() + " has no agent: set the agent of the client.");
        }
        return asked;
    }

    String service() {
        return service.url();
    }

    Waits waits() {
        return waits;
    }

    Patience patience() {
        return new Patience(Conversation.seconds(maxWait), unreachable == Unreachable.WAIT, Client::now);
    }

    double batchTimeout() {
        return Requests.answerTimeout(Conversation.seconds(maxWait));
    }

    Service.Lines lines(String content, double seconds) throws NoAnswer, InterruptedException {
        return service.lines("/v1/allowed", content, seconds);
    }

    /** Wait for the client's own slot while the service is silent. */
    private Permit open(String url, Answer.None none, double left) throws PermitException, InterruptedException {
        waits.open(none);
        LocalPace.Slot slot = pace.take(url, now(), left);
        if (!slot.taken()) {
            String why = service.url() + " " + none.sentence() + " Without it, pages of a site are "
                    + NoAnswer.shortened(slot.interval()) + " s apart.";
            throw new DeferredException(
                    url + " may not be fetched for " + NoAnswer.shortened(slot.delay()) + " s: " + why,
                    new Answer.Later(slot.delay(), Answer.Later.PACE, why));
        }
        try {
            sleep(slot.delay());
        } catch (InterruptedException interrupted) {
            pace.giveBack(url, slot);
            throw interrupted;
        }
        return new Permit(this, url, null, slot.interval());
    }

    private Answer converse(String url, Duration maxWait, Ask service) throws InterruptedException {
        Conversation conversation =
                new Conversation(Conversation.seconds(maxWait), unreachable == Unreachable.WAIT, Client::now);
        Answer answer = null;
        while (true) {
            Conversation.Step step = conversation.next(answer);
            if (step instanceof Conversation.Step.End end) {
                return end.answer();
            } else if (step instanceof Conversation.Step.Ask ask) {
                try {
                    answer = service.ask(ask.left());
                } catch (NoAnswer none) {
                    answer = none.answer();
                }
                waits.heard(url, answer);
            } else if (step instanceof Conversation.Step.Sleep sleep) {
                answer = null;
                sleep(url, sleep.seconds(), sleep.because());
            }
        }
    }

    /** Sleep because of an answer; if interrupted, release its slot. */
    void sleep(String url, double seconds, Answer because) throws InterruptedException {
        waits.sleeps(url, because);
        try {
            sleep(seconds);
        } catch (InterruptedException interrupted) {
            if (because instanceof Answer.Granted held) {
                REPORTS.execute(() -> outcome(held, Requests.RELEASED));
            }
            throw interrupted;
        } finally {
            waits.woke(url, because);
        }
    }

    private static void sleep(double seconds) throws InterruptedException {
        long until = System.nanoTime() + Math.round(seconds * 1e9);
        for (long left = until - System.nanoTime(); left > 0; left = until - System.nanoTime()) {
            Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
        }
    }

    private static double now() {
        return System.nanoTime() / 1e9;
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
        private Question defaults = new Question("");
        private String caller = PROCESS;
        private Duration maxWait = Duration.ofSeconds(60);
        private Unreachable unreachable = Unreachable.FAIL;
        private boolean sign;
        private HttpClient http;

        private Builder(String service) {
            this.service = Requests.checkedService(service);
        }

        /** The API key. */
        public Builder key(String key) {
            this.key = Requests.checkedKey(key);
            return this;
        }

        /** The crawler to ask as, unless a call names another; of several, the first that robots.txt names counts. */
        public Builder agent(String... agents) {
            defaults = defaults.withAgents(agents);
            return this;
        }

        /** What pages are wanted for: search, ai-input, ai-train. By default, the key or the service says so. */
        public Builder purpose(String... purposes) {
            defaults = defaults.withPurposes(purposes);
            return this;
        }

        /** Whether a page whose site refuses a purpose is disallowed: false, unless the service enforces purposes. */
        public Builder enforce(boolean enforce) {
            defaults = defaults.withEnforce(enforce);
            return this;
        }

        /** How robots.txt is read: by default as the crawler does. */
        public Builder dialect(String dialect) {
            defaults = defaults.withDialect(dialect);
            return this;
        }

        /** How old a copy of robots.txt may be: by default as old as the service keeps it. */
        public Builder maxAge(Duration maxAge) {
            defaults = defaults.withMaxAge(maxAge);
            return this;
        }

        /** Who shares an origin's slots fairly with others: by default a name of this process. */
        public Builder caller(String caller) {
            this.caller = Requests.checkedCaller(caller);
            return this;
        }

        /** How long to wait for a slot, or for a verdict that is deferred or busy: 60 s. */
        public Builder maxWait(Duration maxWait) {
            this.maxWait = checkedWait(maxWait);
            return this;
        }

        /** What happens while the service is silent: FAIL. */
        public Builder unreachable(Unreachable unreachable) {
            this.unreachable = Objects.requireNonNull(unreachable, "unreachable");
            return this;
        }

        /** Whether the service signs the requests of pages, if it can (Web Bot Auth); {@link Permit#signed} sends them so. */
        public Builder sign(boolean sign) {
            this.sign = sign;
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
