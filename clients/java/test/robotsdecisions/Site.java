package robotsdecisions;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A site to crawl: a robots.txt, pages that answer 200, and those of {@code busy} with 503 and Retry-After. */
final class Site implements AutoCloseable {
    record Visit(String path, Instant at) {}

    final List<Visit> visits = new CopyOnWriteArrayList<>();
    final String url;
    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();

    Site(String robots, Map<String, String> busy) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            String path = exchange.getRequestURI().toString();
            visits.add(new Visit(path, Instant.now()));
            byte[] body = (path.equals("/robots.txt") ? robots : "page").getBytes(StandardCharsets.UTF_8);
            if (busy.containsKey(path)) {
                exchange.getResponseHeaders().add("Retry-After", busy.get(path));
            }
            exchange.sendResponseHeaders(busy.containsKey(path) ? 503 : 200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        url = "http://127.0.0.1:" + server.getAddress().getPort();
    }

    List<String> pages() {
        return visits.stream().map(Visit::path).filter(path -> !path.equals("/robots.txt")).toList();
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
