package robotsdecisions;

import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.OptionalDouble;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.function.Consumer;

/** The answers to any number of questions, in requests of BATCH_ITEMS. Those that are left after a failure are asked again. */
final class Batch extends Spliterators.AbstractSpliterator<BatchAnswer> {
    private final Client client;
    private final Iterator<Question> questions;
    private final List<Question> asked = new ArrayList<>();
    private LineSubscriber lines;
    private int answered;
    private Patience patience;

    Batch(Client client, Iterator<Question> questions) {
        super(Long.MAX_VALUE, Spliterator.ORDERED | Spliterator.NONNULL);
        this.client = client;
        this.questions = questions;
    }

    @Override
    public boolean tryAdvance(Consumer<? super BatchAnswer> action) {
        try {
            if (answered == asked.size() && !fill()) {
                return false;
            }
            while (true) {
                Answer answer = next();
                client.waits().heard(asked.get(answered).url(), answer);
                if (answer instanceof Answer.Decided decided) {
                    answered++;
                    patience = client.patience();
                    end();
                    action.accept(decided.verdict());
                    return true;
                }
                close();
                giveUpOrWait(answer);
            }
        } catch (PermitException rejected) {
            close();
            throw new UncheckedIOException(rejected);
        } catch (InterruptedException interrupted) {
            close();
            Thread.currentThread().interrupt();
            throw new UncheckedIOException(new ServiceUnavailableException(
                    "There is no verdict on " + pages() + ": the thread was interrupted while it waited for " + client.service() + "."));
        }
    }

    /** What the service answers to the next question. */
    private Answer next() throws InterruptedException {
        double seconds = client.batchTimeout();
        try {
            if (lines == null) {
                StringBuilder content = new StringBuilder();
                asked.subList(answered, asked.size()).forEach(question -> content.append(Requests.batchLine(question, seconds)));
                Service.Lines begun = client.lines(content.toString(), seconds);
                if (begun.refusal() != null) {
                    return begun.refusal();
                }
                lines = begun.lines();
            }
            String line = lines.next(seconds);
            if (line == null) {
                String left = (asked.size() - answered) + " of " + asked.size() + " questions";
                return new Answer.None("leaves " + left + " unanswered.", null);
            }
            return Answers.item(asked.get(answered), line);
        } catch (NoAnswer none) {
            return none.answer();
        }
    }

    /** After the last answer, there are no more lines. */
    private void end() throws PermitException, InterruptedException {
        if (answered < asked.size()) {
            return;
        }
        try {
            if (lines.next(client.batchTimeout()) != null) {
                throw PermitException.of(pages(), client.service(), Answers.notOurs("more answers than questions"));
            }
        } catch (NoAnswer cut) {
            // all questions have been answered
        }
        close();
    }

    private void giveUpOrWait(Answer answer) throws PermitException, InterruptedException {
        OptionalDouble seconds = patience.after(answer);
        if (seconds.isEmpty()) {
            throw PermitException.of(pages(), client.service(), answer);
        }
        client.sleep(asked.get(answered).url(), seconds.getAsDouble(), answer);
    }

    /** Take the next questions; false if there are none. */
    private boolean fill() throws NotUnderstoodException {
        asked.clear();
        answered = 0;
        patience = client.patience();
        while (asked.size() < Requests.BATCH_ITEMS && questions.hasNext()) {
            Question question = client.completed(questions.next());
            if (question.explain()) {
                throw new IllegalArgumentException("a batch explains nothing: ask allowed() with withExplain()");
            }
            asked.add(question);
        }
        return !asked.isEmpty();
    }

    /** Close the connection of answers that are not read. */
    void close() {
        if (lines != null) {
            lines.cancel();
            lines = null;
        }
    }

    private String pages() {
        int left = Math.max(asked.size() - answered, 1);
        return left == 1 ? "1 page" : left + " pages";
    }
}
