package robotsdecisions;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.Test;

public class JsonTest {
    @Test
    public void readsEveryKindOfValue() throws Exception {
        assertEquals(
                Map.of("a", List.of(1L, -2L, 0L, 1.5, 1e3, -0.25e-2), "b", Map.of(), "c", List.of(), "", true),
                Json.parse(" {\"a\":[1, -2,0,1.5,1e3,-0.25E-2],\"b\":{ },\"c\" : [ ]\n,\"\":true}\t\r\n"));
        assertNull(Json.parse("null"));
        assertEquals(false, Json.parse("false"));
        assertEquals("\"\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800", Json.parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\ud83d\\uDE00\\ud800\""));
        assertEquals(999_999_999_999_999_999L, Json.parse("999999999999999999"));
        assertEquals(1e19, Json.parse("10000000000000000000"));
        assertEquals(Double.POSITIVE_INFINITY, Json.parse("1e999"));
    }

    @Test
    public void rejectsWhatIsNotJson() {
        for (String text : List.of(
                "", " ", "nul", "truex", "01", "+1", "-", "1.", ".5", "1e", "0x1", "NaN", "Infinity", "[1,]", "[,1]", "[1",
                "{\"a\":1,}", "{a:1}", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1 \"b\":2}", "{\"a\":1,\"a\":2}", "'a'", "\"a",
                "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u+123\"", "\"\\u\uff11234\"", "\"a\nb\"", "\"\\", "1 2", "[] []",
                "\u00a01", "/**/1")) {
            assertThrows(text, Json.Malformed.class, () -> Json.parse(text));
        }
    }

    @Test
    public void boundsDepthAndNumbers() throws Exception {
        String deep = "[".repeat(Json.MAX_DEPTH) + "1" + "]".repeat(Json.MAX_DEPTH);
        Json.parse(deep);
        assertThrows(Json.Malformed.class, () -> Json.parse("[" + deep + "]"));
        assertThrows(Json.Malformed.class, () -> Json.parse("[".repeat(1_000_000)));
        assertThrows(Json.Malformed.class, () -> Json.parse("{\"a\":".repeat(1_000_000)));
        assertThrows(Json.Malformed.class, () -> Json.parse("1".repeat(65)));
    }

    @Test
    public void readsWhatItWrites() throws Exception {
        List<Object> values = Arrays.asList(null, true, 1L, 1.5, "a\"\\\u0000\u007f\u00e9\ud800", "[]", Map.of());
        for (Object value : values) {
            assertEquals(value, Json.parse(Json.write(value)));
            assertEquals(Map.of("k\n", "[" + value + "]"), Json.parse(Json.write(Map.of("k\n", "[" + value + "]"))));
        }
        assertEquals("[1,[],[\"a\"]]", Json.write(List.of(1, List.of(), List.of("a"))));
        assertEquals("\"\\u00E9\\uD800\"", Json.write("\u00e9\ud800"));
        assertThrows(IllegalArgumentException.class, () -> Json.write(new Object()));
    }
}
