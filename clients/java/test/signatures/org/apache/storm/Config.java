package org.apache.storm;

import java.util.HashMap;

public class Config extends HashMap<String, Object> {
    private static final long serialVersionUID = 1;
}
