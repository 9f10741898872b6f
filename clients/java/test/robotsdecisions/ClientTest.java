package robotsdecisions;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

public class ClientTest {
    private static final String PAGE = "http://www.example.com/page";
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    /** Slots may seem closer than they are: their instants are rounded to milliseconds. */
    private static final Duration TICK = Duration.ofMillis(2);

    private static RealService real;

    @BeforeClass
    public static void start() throws Exception {
        real = new RealService();
    }

    @AfterClass
    public static void stop() throws Exception {
        real.close();
    }

    private static int crawl(Client client, String url) throws Exception {
        try (Permit permit = client.permit(url)) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(url)).build();
            HttpResponse<String> page = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
            permit.report(page);
            return page.statusCode();
        }
    }

    private static Client asking(FakeService service) {
        return Client.builder(service.url).agent("A").build();
    }

    @Test
    public void aSignatureReplacesTheFieldsOfThePageBefore() throws Exception {
        String answer = "{\"verdict\":\"allow\",\"allowed\":true,\"permit\":\"p\",\"wait\":0,\"interval\":0,\"signed\":";
        String signed = "{\"method\":\"GET\",\"headers\":{\"Signature-Agent\":\"a\",\"Signature-Input\":\"b\",\"Signature\":\"c\","
                + "\"User-Agent\":\"AcmeBot/2.0\",\"From\":\"bot@example.com\"}}}";
        try (FakeService service = new FakeService(FakeService.reply(answer + signed), FakeService.reply(answer + "null}"))) {
            Client client = Client.builder(service.url).agent("A").sign(true).build();
            HttpRequest before = HttpRequest.newBuilder(URI.create(PAGE))
                    .header("user-agent", "A/1")
                    .header("signature", "of the page before")
                    .header("X-Own", "1")
                    .header("X-Own", "2")
                    .build();
            HttpRequest post = HttpRequest.newBuilder(before, (name, value) -> true)
                    .POST(HttpRequest.BodyPublishers.noBody())
                    .build();
            try (Permit permit = client.permit(PAGE)) {
                assertEquals(
                        Map.of(
                                "user-agent", List.of("AcmeBot/2.0"), "from", List.of("bot@example.com"), "x-own", List.of("1", "2"),
                                "signature-agent", List.of("a"), "signature-input", List.of("b"), "signature", List.of("c")),
                        fields(permit.signed(before)));
                assertEquals(
                        Map.of("user-agent", List.of("A/1"), "x-own", List.of("1", "2")), fields(permit.signed(post)));
            }
            try (Permit permit = client.permit(PAGE)) {
                assertNull(permit.signed());
                assertEquals(
                        Map.of("user-agent", List.of("A/1"), "x-own", List.of("1", "2")), fields(permit.signed(before)));
            }
            assertTrue(service.asked.get(0).body().contains("\"sign\":true"));
        }
    }

    private static Map<String, List<String>> fields(HttpRequest request) {
        Map<String, List<String>> found = new java.util.HashMap<>();
        request.headers().map().forEach((name, values) -> found.put(name.toLowerCase(java.util.Locale.ROOT), values));
        return found;
    }

    @Test
    public void allowedGivesTheVerdictOfTheService() throws Exception {
        try (Site site = new Site("User-agent: *\nDisallow: /private/\nCrawl-delay: 7\n", Map.of())) {
            Client client = Client.builder(real.url + "/").agent("ExampleBot").build();
            Verdict verdict = client.allowed(site.url + "/private/a%20b?c=d&e=\u00e9");
            assertEquals(Decision.DISALLOW, verdict.decision());
            assertFalse(verdict.allowed());
            assertEquals("rule", verdict.reason());
            assertEquals("disallow: /private/", verdict.rule());
            assertEquals(Integer.valueOf(2), verdict.line());
            assertEquals(Duration.ofSeconds(7), verdict.interval());
            assertEquals("disallow", verdict.members().get("verdict"));
            assertNull(verdict.retryAt());
            assertTrue(client.allowed(site.url + "/").allowed());
            assertThrows(NotUnderstoodException.class, () -> client.allowed("ftp://host/"));
        }
    }

    @Test
    public void batchGivesVerdictsInTheirOrder() throws Exception {
        try (Site site = new Site("User-agent: *\nDisallow: /private/\n", Map.of())) {
            Client client = Client.builder(real.url).agent("ExampleBot").build();
            Stream<Question> questions = Stream.concat(
                    IntStream.range(0, 600).mapToObj(number -> new Question(site.url + "/" + number)),
                    Stream.of(new Question(site.url + "/private/", "OtherBot"), new Question("no URL")));
            List<BatchAnswer> answers;
            try (Stream<BatchAnswer> stream = client.batch(questions)) {
                answers = stream.toList();
            }
            assertEquals(602, answers.size());
            for (int number = 0; number < 600; number++) {
                assertTrue(answers.get(number).allowed());
                assertEquals(site.url + "/" + number, answers.get(number).url());
            }
            assertEquals("OtherBot", answers.get(600).agent());
            assertEquals(Decision.DISALLOW, ((Verdict) answers.get(600)).decision());
            assertEquals(422, ((Unanswered) answers.get(601)).status());
            assertEquals(0, client.batch(Stream.of()).count());
            try (Stream<BatchAnswer> stream = client.batch(Stream.generate(() -> new Question(site.url + "/")))) {
                assertTrue(stream.findFirst().orElseThrow().allowed());
            }
        }
    }

    @Test
    public void permitsKeepThePaceAndSendNothingDisallowed() throws Exception {
        String robots = "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.2\n";
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (Site site = new Site(robots, Map.of("/busy", "600")); FakeService relay = FakeService.relay(real.url)) {
            Client client = Client.builder(relay.url).agent("ExampleBot/1.0").maxWait(Duration.ofSeconds(30)).build();
            List<Future<Integer>> crawled = new ArrayList<>();
            for (String path : List.of("/1", "/2", "/3", "/4")) {
                crawled.add(threads.submit(() -> crawl(client, site.url + path)));
            }
            for (Future<Integer> status : crawled) {
                assertEquals(Integer.valueOf(200), status.get(60, TimeUnit.SECONDS));
            }
            for (Site.Visit visit : site.visits) {
                if (!visit.path().equals("/robots.txt")) {
                    assertFalse(visit.at().isBefore(relay.slots.get(site.url + visit.path()).minus(TICK)));
                }
            }
            List<Instant> slots = relay.slots.values().stream().sorted().toList();
            for (int slot = 1; slot < slots.size(); slot++) {
                Duration apart = Duration.between(slots.get(slot - 1), slots.get(slot)).plus(TICK);
                assertTrue(apart.toString(), apart.toMillis() >= 200);
            }
            DisallowedException no =
                    assertThrows(DisallowedException.class, () -> crawl(client, site.url + "/private/page"));
            assertEquals(Integer.valueOf(2), no.line());
            assertEquals("disallow: /private/", no.rule());
            assertTrue(relay.outcomes.isEmpty());
            assertEquals(503, crawl(client, site.url + "/busy"));
            assertEquals(1, relay.outcomes.size());
            DeferredException later = assertThrows(DeferredException.class, () -> crawl(client, site.url + "/after"));
            assertTrue(later.retryAfter().toSeconds() > 60);
            assertEquals(5, site.pages().size());
            assertFalse(site.pages().contains("/private/page"));
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    public void outcomesAreReportedOnce() throws Exception {
        try (FakeService service = new FakeService(FakeService.allow(0, ""), FakeService.allow(0, ",\"edge\":{}"))) {
            Client client = asking(service);
            try (Permit permit = client.permit(PAGE)) {
                permit.release();
            }
            Permit used = client.permit(PAGE);
            used.report(404, null);
            used.report(200, "7");
            used.close();
            used.close();
            try (Permit unused = client.permit(PAGE)) {
                unused.report(404, null);
            }
            assertEquals("{\"released\":true}", service.outcomes.remove().body());
            FakeService.Asked reported = service.outcomes.remove();
            assertEquals("/v1/permits/cGVybWl0.a/outcome", reported.path());
            Map<?, ?> outcome = (Map<?, ?>) Json.parse(reported.body());
            assertEquals(200L, outcome.get("status"));
            assertEquals("7", outcome.get("retry_after"));
            assertTrue(service.outcomes.isEmpty());
        }
    }

    @Test
    public void interruptedWaitReleasesItsSlot() throws Exception {
        try (FakeService service = new FakeService(FakeService.allow(30, ""))) {
            Thread[] waiting = new Thread[1];
            Client client = Client.builder(service.url).agent("A").build();
            Future<?>[] done = new Future<?>[1];
            ExecutorService thread = Executors.newSingleThreadExecutor();
            done[0] = thread.submit(() -> {
                waiting[0] = Thread.currentThread();
                return client.permit(PAGE);
            });
            while (waiting[0] == null || waiting[0].getState() != Thread.State.TIMED_WAITING || !sleeps(waiting[0])) {
                Thread.onSpinWait();
            }
            thread.shutdownNow();
            assertEquals("{\"released\":true}", service.outcomes.take().body());
            assertThrows(java.util.concurrent.ExecutionException.class, () -> done[0].get());
        }
    }

    private static boolean sleeps(Thread thread) {
        StackTraceElement[] stack = thread.getStackTrace();
        return stack.length > 0 && stack[0].getMethodName().startsWith("sleep");
    }

    private static void refused(Callable<?> call) {
        try {
            call.call();
        } catch (IllegalArgumentException refused) {
            throw refused;
        } catch (Exception other) {
            throw new AssertionError(other);
        }
    }

    @Test
    public void invalidArgumentsAreNamed() throws Exception {
        Client.Builder builder = Client.builder("http://service");
        Map<String, Runnable> wrong = Map.of(
                "service:8080", () -> Client.builder("service:8080"),
                "http://h/?q", () -> Client.builder("http://h/?q"),
                "key", () -> builder.key("two words"),
                "a/b", () -> builder.caller("a/b"),
                "agent", () -> builder.agent(" "),
                "maxWait", () -> builder.maxWait(Duration.ofSeconds(-1)),
                "maxAge", () -> builder.maxAge(Duration.ofSeconds(-1)),
                "asOf", () -> refused(() -> builder.agent("A").build().permit(new Question(PAGE).withAsOf(Instant.EPOCH))),
                "withExplain", () -> builder.agent("A").build().batch(Stream.of(new Question(PAGE).withExplain())).toList());
        wrong.forEach((name, call) -> {
            IllegalArgumentException error = assertThrows(IllegalArgumentException.class, call::run);
            assertTrue(error.getMessage(), error.getMessage().contains(name));
        });
        assertThrows(NotUnderstoodException.class, () -> Client.builder("http://service").build().permit(PAGE));
    }
}
