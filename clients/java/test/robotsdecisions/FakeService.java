package robotsdecisions;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;

/** A service with answers from the test, in their order, the last one to all further questions; or a relay of another. */
final class FakeService implements AutoCloseable {
    record Reply(int status, Map<String, String> headers, String body) {}

    record Asked(String path, String authorization, String body) {}

    /** The connection is closed without an answer. */
    static final Reply RESET = new Reply(0, Map.of(), "");

    final List<Asked> asked = new CopyOnWriteArrayList<>();
    final BlockingQueue<Asked> outcomes = new LinkedBlockingQueue<>();
    /** The instants of the slots that a relay granted, by page. */
    final Map<String, Instant> slots = new ConcurrentHashMap<>();
    final String url;
    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final HttpClient http = HttpClient.newHttpClient();

    FakeService(Reply... replies) throws IOException {
        this(null, List.of(replies));
    }

    static FakeService relay(String real) throws IOException {
        return new FakeService(real, List.of());
    }

    private FakeService(String real, List<Reply> replies) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            String path = exchange.getRequestURI().toString();
            Asked question = new Asked(path, exchange.getRequestHeaders().getFirst("Authorization"), body);
            boolean outcome = path.endsWith("/outcome");
            Reply reply;
            if (path.endsWith("/outcomes")) {
                reply = reply("{\"outcomes\":[]}");
            } else if (real != null) {
                reply = relayed(real + path, body, outcome);
            } else if (outcome) {
                reply = reply("{\"backoff\":null}");
            } else {
                asked.add(question);
                reply = replies.get(Math.min(asked.size(), replies.size()) - 1);
            }
            if (outcome) {
                outcomes.add(question);
            }
            send(exchange, reply);
        });
        server.start();
        url = "http://127.0.0.1:" + server.getAddress().getPort();
    }

    static Reply reply(String body) {
        return new Reply(200, Map.of(), body);
    }

    static Reply allow(double wait, String more) {
        return reply("{\"verdict\":\"allow\",\"allowed\":true,\"reason\":\"no_match\",\"rule\":null,\"permit\":\"cGVybWl0.a\","
                + "\"wait\":" + wait + ",\"interval\":1,\"retry_after\":null" + more + "}");
    }

    static Reply defer(double seconds) {
        Instant at = Instant.now().plusMillis((long) (seconds * 1000));
        return reply("{\"verdict\":\"defer\",\"allowed\":false,\"reason\":\"unreachable\",\"retry_at\":\"" + at + "\"}");
    }

    private Reply relayed(String url, String body, boolean outcome) throws IOException {
        try {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).version(HttpClient.Version.HTTP_1_1);
            if (!body.isEmpty()) {
                request.header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body));
            }
            HttpResponse<String> response = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (!outcome && !body.isEmpty() && Json.parse(response.body()) instanceof Map<?, ?> answer
                    && answer.get("go_at") instanceof String goAt && Json.parse(body) instanceof Map<?, ?> question) {
                slots.put((String) question.get("url"), Instant.parse(goAt));
            }
            return new Reply(response.statusCode(), Map.of(), response.body());
        } catch (InterruptedException | Json.Malformed failed) {
            throw new IOException(failed);
        }
    }

    private static void send(HttpExchange exchange, Reply reply) throws IOException {
        if (reply.status() > 0) {
            reply.headers().forEach(exchange.getResponseHeaders()::set);
            byte[] bytes = reply.body().getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(reply.status(), bytes.length == 0 ? -1 : bytes.length);
            exchange.getResponseBody().write(bytes);
        }
        exchange.close();
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
