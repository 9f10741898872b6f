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
import java.util.function.Function;

/** Requests to the service, bounded in time and bytes. NoAnswer says why there is no response. */
final class Service {
    private final String url;
    private final String key;
    private final HttpClient http;

    Service(String url, String key, HttpClient http) {
        this.url = url;
        this.key = key;
        this.http = http;
    }

    String url() {
        return url;
    }

    /** The whole response; {@code content} is null for a GET. */
    Answers.Response request(String path, String content, double seconds) throws NoAnswer, InterruptedException {
        return response(send(path, content, "application/json", information -> new Bounded(), seconds), HttpResponse::body);
    }

    /** The lines of the answer to a batch, which begins within so many seconds, or why there are none. */
    Lines lines(String path, String content, double seconds) throws NoAnswer, InterruptedException {
        HttpResponse<Body> response = send(path, content, "application/x-ndjson", information -> information.statusCode() == 200
                ? HttpResponse.BodySubscribers.mapping(new LineSubscriber(), lines -> new Body(lines, new byte[0]))
                : HttpResponse.BodySubscribers.mapping(new Bounded(), bytes -> new Body(null, bytes)), seconds);
        return new Lines(response.body().lines(), Answers.refusal(response(response, whole -> whole.body().bytes())));
    }

    /** Either may be null. */
    record Lines(LineSubscriber lines, Answer refusal) {}

    private record Body(LineSubscriber lines, byte[] bytes) {}

    private static <T> Answers.Response response(HttpResponse<T> response, Function<HttpResponse<T>, byte[]> body) {
        return new Answers.Response(
                response.statusCode(),
                response.headers().firstValue("retry-after").orElse(null),
                response.headers().firstValue("date").orElse(null),
                body.apply(response));
    }

    private <T> HttpResponse<T> send(
            String path, String content, String type, HttpResponse.BodyHandler<T> handler, double seconds)
            throws NoAnswer, InterruptedException {
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
            return pending.get(Math.round(seconds * 1000), TimeUnit.MILLISECONDS);
        } catch (TimeoutException late) {
            pending.cancel(true);
            throw NoAnswer.timedOut(seconds);
        } catch (InterruptedException interrupted) {
            pending.cancel(true);
            throw interrupted;
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof TooLong
                    ? NoAnswer.notOurs("more than " + Answers.ANSWER_LIMIT + " bytes")
                    : NoAnswer.of(failed.getCause());
        }
    }

    private static final class TooLong extends IOException {
        private static final long serialVersionUID = 1;
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
            if (read.size() > Answers.ANSWER_LIMIT) {
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
