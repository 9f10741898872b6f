package robotsdecisions;

/**
 * A question of a batch that has no verdict.
 *
 * @param status the status of the problem, 0 if unknown
 */
public record Unanswered(String url, String agent, int status, String why) implements BatchAnswer {
    @Override
    public boolean allowed() {
        return false;
    }
}
