package robotsdecisions.stormcrawler;

import crawlercommons.robots.BaseRobotRules;
import java.net.URL;
import org.apache.storm.Config;
import org.apache.stormcrawler.protocol.Protocol;
import org.apache.stormcrawler.protocol.RobotRulesParser;
import robotsdecisions.Client;
import robotsdecisions.crawlers.ServiceRules;

/**
 * Asks the service in place of robots.txt: name it in {@code http.robots.parser.class}.
 *
 * <p>A page without a verdict is a FETCH_ERROR, which StormCrawler schedules again. The service is asked by the rules and not
 * by the lookup, since StormCrawler fetches what it could not look up within {@code fetcher.thread.timeout}.
 */
public final class ServiceRobotRulesParser extends RobotRulesParser {
    private Client client;

    @Override
    public void setConf(Config conf) {
        super.setConf(conf);
        client = ServiceRules.client(conf::get);
    }

    /** Also of a URL that is malformed, for which the base class has rules that allow it. */
    @Override
    public BaseRobotRules getRobotRulesSet(Protocol protocol, String url) {
        return new ServiceRules(client, url);
    }

    @Override
    public BaseRobotRules getRobotRulesSet(Protocol protocol, URL url) {
        return new ServiceRules(client, url.toString());
    }
}
