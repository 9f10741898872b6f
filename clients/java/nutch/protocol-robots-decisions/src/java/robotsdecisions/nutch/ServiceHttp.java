package robotsdecisions.nutch;

import crawlercommons.robots.BaseRobotRules;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.nutch.crawl.CrawlDatum;
import org.apache.nutch.protocol.Content;
import org.apache.nutch.protocol.http.Http;
import robotsdecisions.Client;
import robotsdecisions.crawlers.ServiceRules;

/**
 * Nutch's protocol-http, which asks the service in place of robots.txt. It does not extend protocol-okhttp, which does not
 * export its libraries to other plugins.
 *
 * <p>A deferred page returns to its queue, and a page without a verdict is retried by a later fetch.
 */
public class ServiceHttp extends Http {
    private Client client;

    @Override
    public void setConf(Configuration conf) {
        super.setConf(conf);
        client = ServiceRules.client(conf::get);
    }

    @Override
    public BaseRobotRules getRobotRules(Text url, CrawlDatum datum, List<Content> robotsTxtContent) {
        return new ServiceRules(client, url.toString());
    }
}
