package robotsdecisions;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The lines of a body, which is read as fast as they are taken. A line, and each silence, is bounded. */
final class LineSubscriber implements HttpResponse.BodySubscriber<LineSubscriber> {
    private record Piece(List<ByteBuffer> bytes, Throwable failure) {}

    private final BlockingQueue<Piece> pieces = new LinkedBlockingQueue<>();
    private final CompletableFuture<Flow.Subscription> subscribed = new CompletableFuture<>();
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private List<ByteBuffer> current = List.of();
    private boolean ended;

    @Override
    public CompletionStage<LineSubscriber> getBody() {
        return CompletableFuture.completedStage(this);
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
        if (subscribed.complete(subscription)) {
            subscription.request(1);
        } else {
            subscription.cancel();
        }
    }

    @Override
    public void onNext(List<ByteBuffer> bytes) {
        pieces.add(new Piece(bytes, null));
    }

    @Override
    public void onError(Throwable failure) {
        pieces.add(new Piece(null, failure));
    }

    @Override
    public void onComplete() {
        pieces.add(new Piece(null, null));
    }

    /** The next line, or null after the last. Bytes after the last newline are no line. */
    String next(long silenceSeconds) throws IOException, InterruptedException {
        while (!ended) {
            for (ByteBuffer buffer : current) {
                while (buffer.hasRemaining()) {
                    byte one = buffer.get();
                    if (one == '\n') {
                        String found = line.toString(StandardCharsets.UTF_8);
                        line.reset();
                        return found;
                    }
                    line.write(one);
                    if (line.size() > Protocol.ANSWER_LIMIT) {
                        throw new IOException("a line of its answer is longer than " + Protocol.ANSWER_LIMIT + " bytes");
                    }
                }
            }
            Piece piece = pieces.poll(silenceSeconds, TimeUnit.SECONDS);
            if (piece == null) {
                throw new IOException("it does not respond within " + silenceSeconds + " s");
            }
            if (piece.failure() != null) {
                throw new IOException("it cannot be reached: " + piece.failure().getMessage(), piece.failure());
            }
            ended = piece.bytes() == null;
            current = ended ? List.of() : piece.bytes();
            if (!ended) {
                subscribed.join().request(1);
            }
        }
        return null;
    }

    /** Close the connection, unless the body has been read. */
    void cancel() {
        if (!ended) {
            subscribed.whenComplete((subscription, failure) -> subscription.cancel());
        }
    }
}
