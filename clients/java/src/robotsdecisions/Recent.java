package robotsdecisions;

import java.util.LinkedHashMap;
import java.util.Map;

/** A map of the sites that were used last. */
final class Recent<V> extends LinkedHashMap<String, V> {
    private static final long serialVersionUID = 1;
    private static final int SITES = 65_536;

    Recent() {
        super(16, 0.75f, true);
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, V> eldest) {
        return size() > SITES;
    }
}
