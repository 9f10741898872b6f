/** The client of a robots.txt decision service, with the HTTP client of the JDK. */
module robotsdecisions {
    requires transitive java.net.http;

    exports robotsdecisions;
}
