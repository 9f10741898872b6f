package robotsdecisions;

import java.io.ByteArrayOutputStream;
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
    private boolean given;

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

    /** The next line, or null after the last. Bytes after the last newline are a line only if there is no other. */
    String next(double seconds) throws NoAnswer, InterruptedException {
        while (!ended) {
            for (ByteBuffer buffer : current) {
                while (buffer.hasRemaining()) {
                    byte one = buffer.get();
                    if (one == '\n') {
                        String found = line.toString(StandardCharsets.UTF_8);
                        line.reset();
                        given = true;
                        return found;
                    }
                    line.write(one);
                    if (line.size() > Answers.ANSWER_LIMIT) {
                        throw NoAnswer.notOurs("more than " + Answers.ANSWER_LIMIT + " bytes in a line");
                    }
                }
            }
            Piece piece = pieces.poll(Math.round(seconds * 1000), TimeUnit.MILLISECONDS);
            if (piece == null) {
                throw NoAnswer.timedOut(seconds);
            }
            if (piece.failure() != null) {
                throw NoAnswer.of(piece.failure());
            }
            ended = piece.bytes() == null;
            current = ended ? List.of() : piece.bytes();
            if (!ended) {
                subscribed.join().request(1);
            }
        }
        String rest = given || line.size() == 0 ? null : line.toString(StandardCharsets.UTF_8);
        line.reset();
        return rest;
    }

    /** Close the connection, unless the body has been read. */
    void cancel() {
        if (!ended) {
            subscribed.whenComplete((subscription, failure) -> subscription.cancel());
        }
    }
}
