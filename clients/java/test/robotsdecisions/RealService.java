package robotsdecisions;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The service itself: the one at SERVICE_URL, or one with a store of its own, as {@code make run} starts it. */
final class RealService implements AutoCloseable {
    private static final Pattern URL = Pattern.compile("running on (http://\\S+)");

    final String url;
    private final Process process;

    RealService() throws IOException {
        String running = System.getenv("SERVICE_URL");
        if (running != null) {
            process = null;
            url = running;
            return;
        }
        ProcessBuilder builder = new ProcessBuilder(".venv/bin/python", "-m", "app").redirectErrorStream(true);
        Map<String, String> environment = builder.environment();
        environment.remove("REDIS_URL");
        environment.putAll(Map.of("PORT", "0", "ALLOW_ADDRESSES", "127.0.0.0/8", "ALLOW_PORTS", "*"));
        environment.putAll(Map.of("PACE_BY", "origin", "PACE_FLOOR", "0.05")); // the sites are ports of one host
        process = builder.start();
        url = started(process.inputReader(StandardCharsets.UTF_8));
    }

    private String started(BufferedReader output) throws IOException {
        StringBuilder said = new StringBuilder();
        String found = null;
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            said.append(line).append('\n');
            Matcher matcher = URL.matcher(line);
            found = matcher.find() ? matcher.group(1) : found;
            if (found != null && said.indexOf("Application startup complete") >= 0) {
                Thread reader = new Thread(() -> output.lines().forEach(rest -> {}));
                reader.setDaemon(true);
                reader.start();
                return found;
            }
        }
        throw new IOException("the service ended: " + said);
    }

    @Override
    public void close() {
        if (process == null) {
            return;
        }
        process.toHandle().destroy(); // Process.destroy would close the output while it is read
        process.onExit().join();
    }
}
