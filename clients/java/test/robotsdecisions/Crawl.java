package robotsdecisions;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** A crawl in its own process: the argument is its plan in JSON, and it prints what failed, as [URL, message, kind]. */
public final class Crawl {
    private Crawl() {}

    public static void main(String[] arguments) throws Exception {
        Map<?, ?> plan = (Map<?, ?>) Json.parse(arguments[0]);
        Client client = ConformanceTest.client((String) plan.get("service"), (Map<?, ?>) plan.get("client"));
        HttpClient http = HttpClient.newHttpClient();
        ConcurrentLinkedQueue<List<String>> failed = new ConcurrentLinkedQueue<>();
        List<Callable<Void>> pages = new ArrayList<>();
        for (Object url : (List<?>) plan.get("urls")) {
            pages.add(() -> {
                try (Permit permit = client.permit((String) url)) {
                    HttpRequest request = permit.signed(HttpRequest.newBuilder(URI.create((String) url)).build());
                    permit.report(http.send(request, HttpResponse.BodyHandlers.discarding()));
                } catch (PermitException error) {
                    String kind = error.getClass().getSimpleName().replace("Exception", "");
                    failed.add(List.of((String) url, error.getMessage(), kind));
                }
                return null;
            });
        }
        ExecutorService threads = Executors.newFixedThreadPool(pages.size());
        for (Future<Void> page : threads.invokeAll(pages)) {
            page.get();
        }
        threads.shutdown();
        client.close();
        System.out.println(Json.write(Map.of("failed", List.copyOf(failed))));
    }
}
