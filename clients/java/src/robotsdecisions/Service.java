package robotsdecisions;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Requests to the service, bounded in time and bytes. The message of an IOException says why there is no response. */
final class Service {
    /** Seconds for a permit or a verdict, and for each line of a batch. */
    static final long ANSWER_TIMEOUT = Protocol.FETCH_WAIT + 5;

    /** Seconds for the report of an outcome, which is lost after that. */
    static final long OUTCOME_TIMEOUT = 5;

    private final String url;
    private final String key;
    private final HttpClient http;

    Service(String url, String key, HttpClient http) {
        this.url = url;
        this.key = key;
        this.http = http;
    }

    /** The whole response; {@code content} is null for a GET. */
    Protocol.Response request(String path, String content, long seconds) throws IOException, InterruptedException {
        HttpResponse<byte[]> response = send(path, content, "application/json", information -> new Bounded(), seconds);
        return new Protocol.Response(
                response.statusCode(),
                response.headers().firstValue("retry-after").orElse(null),
                response.headers().firstValue("date").orElse(null),
                response.body());
    }

    /** The lines of the answer to a batch, which begins within the time of an answer. */
    LineSubscriber lines(String path, String content) throws IOException, InterruptedException {
        HttpResponse<LineSubscriber> response =
                send(path, content, "application/x-ndjson", information -> new LineSubscriber(), ANSWER_TIMEOUT);
        if (response.statusCode() != 200) {
            response.body().cancel();
            throw new IOException("it answers " + response.statusCode());
        }
        return response.body();
    }

    private <T> HttpResponse<T> send(
            String path, String content, String type, HttpResponse.BodyHandler<T> handler, long seconds)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + path))
                .version(HttpClient.Version.HTTP_1_1)
                .header("Accept", "application/json, application/x-ndjson");
        if (key != null) {
            request.header("Authorization", "Bearer " + key);
        }
        if (content != null) {
            request.header("Content-Type", type)
                    .POST(HttpRequest.BodyPublishers.ofString(content, StandardCharsets.US_ASCII));
        }
        // The timeout of a request does not include its body.
        CompletableFuture<HttpResponse<T>> pending = http.sendAsync(request.build(), handler);
        try {
            return pending.get(seconds, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            pending.cancel(true);
            throw new IOException("it does not respond within " + seconds + " s");
        } catch (InterruptedException interrupted) {
            pending.cancel(true);
            throw interrupted;
        } catch (ExecutionException failed) {
            Throwable cause = failed.getCause();
            if (cause instanceof TooLong) {
                throw (TooLong) cause;
            }
            String why = cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
            throw new IOException("it cannot be reached: " + why, cause);
        }
    }

    private static final class TooLong extends IOException {
        private static final long serialVersionUID = 1;

        TooLong() {
            super("its answer is longer than " + Protocol.ANSWER_LIMIT + " bytes");
        }
    }

    /** A body of at most ANSWER_LIMIT bytes. */
    private static final class Bounded implements HttpResponse.BodySubscriber<byte[]> {
        private final CompletableFuture<byte[]> body = new CompletableFuture<>();
        private final ByteArrayOutputStream read = new ByteArrayOutputStream();
        private Flow.Subscription subscription;

        @Override
        public CompletionStage<byte[]> getBody() {
            return body;
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            this.subscription = subscription;
            subscription.request(1);
        }

        @Override
        public void onNext(List<ByteBuffer> buffers) {
            for (ByteBuffer buffer : buffers) {
                byte[] bytes = new byte[buffer.remaining()];
                buffer.get(bytes);
                read.writeBytes(bytes);
            }
            if (read.size() > Protocol.ANSWER_LIMIT) {
                subscription.cancel();
                body.completeExceptionally(new TooLong());
            } else {
                subscription.request(1);
            }
        }

        @Override
        public void onError(Throwable failure) {
            body.completeExceptionally(failure);
        }

        @Override
        public void onComplete() {
            body.complete(read.toByteArray());
        }
    }
}
