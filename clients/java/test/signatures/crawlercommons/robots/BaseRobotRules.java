package crawlercommons.robots;

import java.io.Serializable;
import java.net.URL;
import java.util.List;

public abstract class BaseRobotRules implements Serializable {
    private static final long serialVersionUID = 1;

    public static final long UNSET_CRAWL_DELAY = Long.MIN_VALUE;

    public abstract boolean isAllowed(String url);

    public abstract boolean isAllowed(URL url);

    public abstract boolean isAllowAll();

    public abstract boolean isAllowNone();

    public long getCrawlDelay() {
        return UNSET_CRAWL_DELAY;
    }

    public boolean isDeferVisits() {
        return false;
    }

    public List<String> getSitemaps() {
        return List.of();
    }
}
