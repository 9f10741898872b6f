package org.apache.hadoop.conf;

import java.util.HashMap;
import java.util.Map;

public class Configuration {
    private final Map<String, String> values = new HashMap<>();

    public String get(String name) {
        return values.get(name);
    }

    public String get(String name, String defaultValue) {
        return values.getOrDefault(name, defaultValue);
    }

    public void set(String name, String value) {
        values.put(name, value);
    }
}
