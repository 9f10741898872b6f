package robotsdecisions;

/** The pace that a client keeps by itself while the service is silent: at least a second, or the last known interval. */
final class LocalPace {
    private static final double MIN_INTERVAL = 1;

    /** A slot that begins in {@code delay} seconds, at {@code at}; {@code taken} is false if that is too late. */
    record Slot(double delay, double interval, boolean taken, double at) {}

    private static final class Site {
        private double interval = MIN_INTERVAL;
        private double free;
    }

    private final Recent<Site> sites = new Recent<>();

    /** Note the interval of a slot that the service granted, and when it began. */
    synchronized void learn(String url, double interval, double begun) {
        Site site = site(url);
        site.interval = Math.min(Math.max(interval, MIN_INTERVAL), Answers.MAX_DELAY);
        site.free = Math.max(site.free, begun + site.interval);
    }

    /** The next slot, which is taken if it begins within so many seconds. */
    synchronized Slot take(String url, double now, double within) {
        Site site = site(url);
        double at = site.free == 0 ? now : Math.max(site.free, now);
        if (at - now > within) {
            return new Slot(at - now, site.interval, false, at);
        }
        site.free = at + site.interval;
        return new Slot(at - now, site.interval, true, at);
    }

    /** Make the slot of an interrupted wait free, unless another has been given after it. */
    synchronized void giveBack(String url, Slot slot) {
        Site site = site(url);
        if (site.free == slot.at() + slot.interval()) {
            site.free = slot.at();
        }
    }

    private Site site(String url) {
        return sites.computeIfAbsent(Requests.site(url), name -> new Site());
    }
}
