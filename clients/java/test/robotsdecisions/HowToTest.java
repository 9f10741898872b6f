package robotsdecisions;

import static org.junit.Assert.assertEquals;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.Test;

public class HowToTest {
    /** The first block of this language in the page. */
    private static String block(String page, String language) {
        int start = page.indexOf("```" + language + "\n") + language.length() + 4;
        return page.substring(start, page.indexOf("```", start));
    }

    @Test
    public void exampleOfTheHowToPageHolds() throws Exception {
        String page = Files.readString(Path.of("docs/how-to/java.md"));
        Path directory = Files.createTempDirectory("how-to");
        Path source = directory.resolve("Crawl.java");
        try (RealService real = new RealService();
                Site site = new Site("User-agent: *\nDisallow: /private/\n", Map.of())) {
            String example = block(page, "java");
            Files.writeString(source, example.replace("http://127.0.0.1:8080", real.url).replace("http://127.0.0.1:9000", site.url));
            Process process = new ProcessBuilder(
                            "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                            "-cp", System.getProperty("java.class.path"), source.toString())
                    .redirectErrorStream(true)
                    .start();
            String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertEquals(block(page, "text"), printed);
            assertEquals(0, process.waitFor());
        } finally {
            Files.deleteIfExists(source);
            Files.deleteIfExists(directory);
        }
    }
}
