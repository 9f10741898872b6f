package org.apache.nutch.protocol.http;

import crawlercommons.robots.BaseRobotRules;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.nutch.crawl.CrawlDatum;
import org.apache.nutch.protocol.Content;

public class Http {
    public void setConf(Configuration conf) {}

    public BaseRobotRules getRobotRules(Text url, CrawlDatum datum, List<Content> robotsTxtContent) {
        throw new UnsupportedOperationException("it fetches robots.txt");
    }
}
