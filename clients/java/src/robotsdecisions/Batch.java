package robotsdecisions;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.function.Consumer;

/** The answers to any number of questions, in requests of BATCH_ITEMS. */
final class Batch extends Spliterators.AbstractSpliterator<BatchAnswer> {
    private final Service service;
    private final String agent;
    private final Iterator<Question> questions;
    private final List<Question> asked = new ArrayList<>();
    private LineSubscriber lines;
    private int answered;

    Batch(Service service, String agent, Iterator<Question> questions) {
        super(Long.MAX_VALUE, Spliterator.ORDERED | Spliterator.NONNULL);
        this.service = service;
        this.agent = agent;
        this.questions = questions;
    }

    @Override
    public boolean tryAdvance(Consumer<? super BatchAnswer> action) {
        BatchAnswer answer;
        try {
            if (lines == null && !ask()) {
                return false;
            }
            Question question = asked.get(answered);
            String line = lines.next(Service.ANSWER_TIMEOUT);
            if (line == null) {
                throw new IOException((asked.size() - answered) + " answers are missing");
            }
            answer = Protocol.item(question.url(), question.agent(), line);
            answered++;
            if (answered == asked.size()) {
                if (lines.next(Service.ANSWER_TIMEOUT) != null) {
                    throw new IOException("it has more answers than questions");
                }
                lines = null;
            }
        } catch (PermitException rejected) {
            close();
            throw new UncheckedIOException(rejected);
        } catch (IOException | Json.Malformed failed) {
            throw unavailable(failed.getMessage());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw unavailable("the thread was interrupted");
        }
        action.accept(answer);
        return true;
    }

    /** Send the next questions; false if there are none. */
    private boolean ask() throws IOException, InterruptedException {
        asked.clear();
        answered = 0;
        StringBuilder content = new StringBuilder();
        while (asked.size() < Protocol.BATCH_ITEMS && questions.hasNext()) {
            Question question = questions.next();
            String asking = Client.checkedAgent(question.url(), question.agent() == null ? agent : question.agent());
            asked.add(new Question(question.url(), asking));
            content.append(Protocol.batchLine(question.url(), asking));
        }
        if (!asked.isEmpty()) {
            lines = service.lines("/v1/allowed", content.toString());
        }
        return !asked.isEmpty();
    }

    /** Close the connection of answers that are not read. */
    void close() {
        if (lines != null) {
            lines.cancel();
        }
    }

    private UncheckedIOException unavailable(String why) {
        close();
        return new UncheckedIOException(new ServiceUnavailableException(
                "There is no verdict on " + (asked.size() - answered) + " pages: " + why + "."));
    }
}
