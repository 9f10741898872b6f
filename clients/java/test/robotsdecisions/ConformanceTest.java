package robotsdecisions;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.BufferedReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.junit.Test;

/** The cases of clients/conformance.json. */
public class ConformanceTest {
    private static final int AT_ONCE = 8;
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    /** The lines of the log, with their levels. */
    private static final class Lines extends Handler {
        private final ConcurrentLinkedQueue<String> lines = new ConcurrentLinkedQueue<>();

        @Override
        public void publish(LogRecord line) {
            if (line.getLevel().intValue() >= Level.INFO.intValue()) {
                lines.add(line.getMessage());
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}

        /** The lines about a case, whose name is in the URL of its service and in its host. */
        List<String> about(String name) {
            return lines.stream().filter(line -> line.contains("/" + name) || line.contains(name + ".example")).toList();
        }
    }

    @Test(timeout = 120_000)
    public void everyCaseHolds() throws Exception {
        Process server = new ProcessBuilder(".venv/bin/python", "-m", "tests.clients.conformance")
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        ExecutorService threads = Executors.newFixedThreadPool(AT_ONCE);
        Lines log = new Lines();
        Logger logger = Logger.getLogger(Client.class.getName());
        logger.setUseParentHandlers(false);
        logger.addHandler(log);
        try (BufferedReader output = server.inputReader()) {
            String url = output.readLine();
            List<?> cases = (List<?>) Json.parse(sent(url + "/cases", null));
            List<Callable<List<?>>> runs = new ArrayList<>();
            for (Object one : cases) {
                runs.add(() -> differences(url, members(one), log));
            }
            List<Object> wrong = new ArrayList<>();
            for (Future<List<?>> run : threads.invokeAll(runs)) {
                wrong.addAll(run.get());
            }
            assertEquals(List.of(), wrong);
            assertTrue(cases.size() > 100);
        } finally {
            logger.removeHandler(log);
            logger.setUseParentHandlers(true);
            threads.shutdownNow();
            server.destroy();
            server.waitFor();
        }
    }

    private static List<?> differences(String url, Map<String, ?> one, Lines log) throws Exception {
        Client client = client((String) one.get("service"), members(one.get("client")));
        List<Object> results = new ArrayList<>();
        long begun = System.nanoTime();
        for (Object call : (List<?>) one.get("calls")) {
            Map<String, Object> result = called(client, members(call));
            result.put("at", (System.nanoTime() - begun) / 1e9);
            results.add(result);
        }
        client.close();
        String name = (String) one.get("name");
        String given = Json.write(Map.of("results", results, "log", log.about(name)));
        List<?> differences = (List<?>) Json.parse(sent(url + "/cases/" + name, given));
        return differences.stream().map(difference -> name + ": " + difference).toList();
    }

    /** A client with these options, by their names in the file. */
    static Client client(String service, Map<?, ?> options) {
        Client.Builder builder = Client.builder(service).agent("ExampleBot").http(HTTP);
        options.forEach((name, value) -> {
            switch ((String) name) {
                case "agent" -> builder.agent(names(value));
                case "purpose" -> builder.purpose(names(value));
                case "enforce" -> builder.enforce((Boolean) value);
                case "dialect" -> builder.dialect((String) value);
                case "max_age" -> builder.maxAge(duration(value));
                case "max_wait" -> builder.maxWait(duration(value));
                case "key" -> builder.key((String) value);
                case "caller" -> builder.caller((String) value);
                case "sign" -> builder.sign((Boolean) value);
                case "unreachable" -> builder.unreachable(Unreachable.valueOf(((String) value).toUpperCase(java.util.Locale.ROOT)));
                default -> throw new IllegalArgumentException((String) name);
            }
        });
        return builder.build();
    }

    private static Map<String, String> lowerCased(Map<String, String> fields) {
        Map<String, String> lowered = new LinkedHashMap<>();
        fields.forEach((name, value) -> lowered.put(name.toLowerCase(java.util.Locale.ROOT), value));
        return lowered;
    }

    private static Map<String, Object> called(Client client, Map<String, ?> call) throws Exception {
        Map<String, Object> result = new LinkedHashMap<>();
        List<Object> answers = new ArrayList<>();
        try {
            if (call.get("batch") instanceof List<?> questions) {
                result.put("answers", answers);
                Stream<Question> asked = questions.stream().map(one -> one instanceof String url
                        ? new Question(url)
                        : question((String) members(one).get("url"), members(one)));
                try (Stream<BatchAnswer> batch = client.batch(asked)) {
                    batch.forEach(answer -> answers.add(described(answer)));
                }
            } else if (call.get("allowed") instanceof String url) {
                result.putAll(described(client.allowed(question(url, call))));
            } else {
                Question question = question((String) call.get("permit"), call);
                Object maxWait = call.get("max_wait");
                try (Permit permit = maxWait == null ? client.permit(question) : client.permit(question, duration(maxWait))) {
                    result.put("granted", permit.granted());
                    result.put("interval", Conversation.seconds(permit.interval()));
                    result.put("version", permit.version());
                    result.put("signed", permit.signed() == null ? null : lowerCased(permit.signed()));
                    if (call.get("report") instanceof Map<?, ?> report) {
                        permit.report(
                                ((Long) report.get("status")).intValue(),
                                (String) report.get("retry_after"),
                                (String) report.get("price"));
                    }
                    if (Boolean.TRUE.equals(call.get("release"))) {
                        permit.release();
                    }
                }
            }
        } catch (PermitException error) {
            result.putAll(described(error));
        } catch (UncheckedIOException error) {
            result.putAll(described((PermitException) error.getCause()));
        }
        return result;
    }

    private static Question question(String url, Map<String, ?> members) {
        Question question = new Question(url);
        for (Map.Entry<String, ?> member : members.entrySet()) {
            Object value = member.getValue();
            question = switch (member.getKey()) {
                case "agent" -> question.withAgents(names(value));
                case "purpose" -> question.withPurposes(names(value));
                case "enforce" -> question.withEnforce((Boolean) value);
                case "dialect" -> question.withDialect((String) value);
                case "as_of" -> question.withAsOf(Instant.parse((String) value));
                case "max_age" -> question.withMaxAge(duration(value));
                case "explain" -> question.withExplain();
                case "accept_signature" -> question.withAcceptSignature((String) value);
                case "url", "permit", "allowed", "max_wait", "report", "release" -> question;
                default -> throw new IllegalArgumentException(member.getKey());
            };
        }
        return question;
    }

    private static Map<String, Object> described(BatchAnswer answer) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("url", answer.url());
        result.put("agent", answer.agent());
        result.put("allowed", answer.allowed());
        if (answer instanceof Unanswered unanswered) {
            result.put("status", unanswered.status());
            result.put("why", unanswered.why());
            result.put("retry_after", seconds(unanswered.retryAfter()));
        } else if (answer instanceof Verdict verdict) {
            result.put("verdict", verdict.decision().name().toLowerCase(java.util.Locale.ROOT));
            result.put("reason", verdict.reason());
            result.put("rule", verdict.rule());
            result.put("line", verdict.line());
            result.put("summary", verdict.summary());
            result.put("interval", seconds(verdict.interval()));
            result.put("retry_at", verdict.retryAt() == null ? null : verdict.retryAt().toString());
            result.put("version", verdict.version());
            result.put("members", verdict.members());
        }
        return result;
    }

    private static Map<String, Object> described(PermitException error) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("message", error.getMessage());
        if (error instanceof DisallowedException disallowed) {
            result.put("error", "disallowed");
            result.put("reason", disallowed.reason());
            result.put("rule", disallowed.rule());
            result.put("line", disallowed.line());
        } else if (error instanceof DeferredException deferred) {
            result.put("error", "deferred");
            result.put("reason", deferred.reason());
            result.put("seconds", seconds(deferred.retryAfter()));
            result.put("retry_in", seconds(Duration.between(Instant.now(), deferred.retryAt())));
        } else if (error instanceof NotUnderstoodException) {
            result.put("error", "not_understood");
        } else {
            result.put("error", error instanceof MisconfiguredException ? "misconfigured" : "unavailable");
        }
        return result;
    }

    private static String[] names(Object value) {
        return value instanceof String name ? new String[] {name} : ((List<?>) value).toArray(String[]::new);
    }

    private static Duration duration(Object seconds) {
        return Conversation.duration(((Number) seconds).doubleValue());
    }

    private static Double seconds(Duration duration) {
        return duration == null ? null : Conversation.seconds(duration);
    }

    @SuppressWarnings("unchecked") // Json reads objects with names of type String
    private static Map<String, ?> members(Object object) {
        return (Map<String, ?>) object;
    }

    private static String sent(String url, String body) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).version(HttpClient.Version.HTTP_1_1);
        if (body != null) {
            request.POST(HttpRequest.BodyPublishers.ofString(body));
        }
        return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString()).body();
    }
}
