package robotsdecisions;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import crawlercommons.robots.BaseRobotRules;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.URL;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.nutch.crawl.CrawlDatum;
import org.apache.storm.Config;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;
import robotsdecisions.crawlers.ServiceRules;
import robotsdecisions.nutch.ServiceHttp;
import robotsdecisions.stormcrawler.ServiceRobotRulesParser;

/** The adapters of StormCrawler and Nutch, asked in the order in which the fetchers of both ask. */
public class CrawlersTest {
    private static final String ROBOTS = "User-agent: *\nDisallow: /private/\nCrawl-delay: 7\nSitemap: http://h.example/s.xml\n";
    private static RealService real;

    @BeforeClass
    public static void start() throws Exception {
        real = new RealService(Map.of());
    }

    @AfterClass
    public static void stop() {
        real.close();
    }

    private static Function<String, BaseRobotRules> stormCrawler(String service) {
        Config conf = new Config();
        conf.putAll(Map.of("robots.decisions.url", service, "http.agent.name", "ExampleBot", "robots.decisions.max.wait", 5));
        ServiceRobotRulesParser parser = new ServiceRobotRulesParser();
        parser.setConf(conf);
        return url -> parser.getRobotRulesSet(null, url);
    }

    private static Function<String, BaseRobotRules> nutch(String service) {
        Configuration conf = new Configuration();
        conf.set("robots.decisions.url", service);
        conf.set("robots.decisions.key", "k3y");
        conf.set("http.agent.name", "ExampleBot");
        ServiceHttp protocol = new ServiceHttp();
        protocol.setConf(conf);
        return url -> protocol.getRobotRules(new Text(url), new CrawlDatum(), null);
    }

    /** Fetch a page as a fetcher does, if the rules allow it. */
    private static boolean fetch(Function<String, BaseRobotRules> crawler, String url) throws Exception {
        BaseRobotRules rules = crawler.apply(url);
        if (rules.isDeferVisits() || !rules.isAllowed(url)) {
            return false;
        }
        HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.discarding());
        return true;
    }

    @Test
    public void disallowedPageIsNeverRequested() throws Exception {
        for (Function<String, BaseRobotRules> crawler : List.of(stormCrawler(real.url), nutch(real.url))) {
            try (Site site = new Site(ROBOTS, Map.of())) {
                assertTrue(fetch(crawler, site.url + "/page"));
                assertFalse(fetch(crawler, site.url + "/private/page"));
                assertFalse(fetch(crawler, "no URL"));
                assertEquals(List.of("/page"), site.pages());
                BaseRobotRules rules = crawler.apply(site.url + "/page");
                assertEquals(List.of("http://h.example/s.xml"), rules.getSitemaps());
                assertEquals(7000, rules.getCrawlDelay());
                assertFalse(rules.isAllowed(new URL(site.url + "/private/other")));
                assertFalse(rules.isAllowAll() || rules.isAllowNone());
            }
        }
    }

    @Test
    public void deferredPageIsLeftForLater() throws Exception {
        FakeService.Reply page = FakeService.reply("{\"verdict\":\"allow\",\"allowed\":true,\"reason\":\"no_match\"}");
        try (FakeService service = new FakeService(FakeService.defer(600), FakeService.defer(600), page)) {
            BaseRobotRules first = nutch(service.url).apply("http://h/page");
            assertTrue(first.isDeferVisits());
            assertEquals("Bearer k3y", service.asked.get(0).authorization());
            Function<String, BaseRobotRules> crawler = stormCrawler(service.url);
            BaseRobotRules second = crawler.apply("http://h/page");
            assertThrows(UncheckedIOException.class, () -> second.isAllowed("http://h/page"));
            assertTrue(crawler.apply("http://h/page").isAllowed("http://h/page"));
            assertEquals(3, service.asked.size());
        }
    }

    @Test
    public void nothingIsAllowedWithoutTheService() throws Exception {
        try (FakeService service = new FakeService(FakeService.RESET)) {
            for (Function<String, BaseRobotRules> crawler : List.of(stormCrawler(service.url), nutch(service.url))) {
                BaseRobotRules rules = crawler.apply("http://h/page");
                assertThrows(UncheckedIOException.class, () -> rules.isAllowed("http://h/page"));
                assertThrows(UncheckedIOException.class, rules::isDeferVisits);
            }
        }
    }

    @Test
    public void invalidSettingsAreNamed() {
        Map<String, Object> right = Map.of("robots.decisions.url", "http://h", "http.agent.name", "A");
        ServiceRules.client(right::get);
        assertThrows(IllegalArgumentException.class, () -> ServiceRules.client(name -> null));
        IllegalArgumentException error = assertThrows(
                IllegalArgumentException.class,
                () -> ServiceRules.client(name -> name.endsWith("wait") ? "soon" : right.get(name)));
        assertTrue(error.getMessage(), error.getMessage().contains("robots.decisions.max.wait=soon"));
    }
}
