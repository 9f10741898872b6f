package robotsdecisions;

/** What to do with a page: fetch it, leave it, or ask again later. */
public enum Decision {
    ALLOW,
    DISALLOW,
    DEFER
}
