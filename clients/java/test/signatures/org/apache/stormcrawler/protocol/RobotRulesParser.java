package org.apache.stormcrawler.protocol;

import crawlercommons.robots.BaseRobotRules;
import java.net.URL;
import org.apache.storm.Config;

public abstract class RobotRulesParser {
    public void setConf(Config conf) {}

    public BaseRobotRules getRobotRulesSet(Protocol protocol, String url) {
        throw new UnsupportedOperationException("its rules allow what it cannot parse");
    }

    public abstract BaseRobotRules getRobotRulesSet(Protocol protocol, URL url);
}
