package robotsdecisions;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON (RFC 8259) by Jackson's streams, with bounded depth. Objects are read as Map, arrays as List, integers of up to 18
 * digits as Long and other numbers as Double.
 */
final class Json {
    static final int MAX_DEPTH = 64;
    private static final int MAX_NUMBER = 64;
    private static final int MAX_LONG = 18;

    /** ASCII, since URLs may contain lone surrogates, which UTF-8 cannot encode. Names of the service are not kept. */
    private static final JsonFactory FACTORY = JsonFactory.builder()
            .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
            .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(JsonWriteFeature.ESCAPE_NON_ASCII)
            .build();

    /** Text that is not JSON, or exceeds a limit. */
    static final class Malformed extends Exception {
        private static final long serialVersionUID = 1;

        Malformed(String why) {
            super(why);
        }
    }

    private Json() {}

    /** Read one value, which is the whole text. */
    static Object parse(String text) throws Malformed {
        try (JsonParser parser = FACTORY.createParser(text)) {
            parser.nextToken();
            Object value = value(parser, 0);
            if (parser.nextToken() != null) {
                throw new Malformed("text after the value");
            }
            return value;
        } catch (IOException malformed) {
            throw new Malformed(malformed.getMessage());
        }
    }

    /** Write a value in ASCII. */
    static String write(Object value) {
        StringWriter out = new StringWriter();
        try (JsonGenerator generator = FACTORY.createGenerator(out)) {
            write(value, generator);
        } catch (IOException impossible) { // a StringWriter throws none
            throw new UncheckedIOException(impossible);
        }
        return out.toString();
    }

    private static Object value(JsonParser parser, int depth) throws IOException, Malformed {
        if (parser.currentToken() == null) {
            throw new Malformed("no value");
        }
        if (depth > MAX_DEPTH) {
            throw new Malformed("more than " + MAX_DEPTH + " levels");
        }
        return switch (parser.currentToken()) {
            case START_OBJECT -> object(parser, depth);
            case START_ARRAY -> array(parser, depth);
            case VALUE_STRING -> parser.getText();
            case VALUE_TRUE -> Boolean.TRUE;
            case VALUE_FALSE -> Boolean.FALSE;
            case VALUE_NULL -> null;
            default -> number(parser);
        };
    }

    private static Map<String, Object> object(JsonParser parser, int depth) throws IOException, Malformed {
        Map<String, Object> members = new LinkedHashMap<>();
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
            String name = parser.currentName();
            parser.nextToken();
            members.put(name, value(parser, depth + 1));
        }
        return Collections.unmodifiableMap(members);
    }

    private static List<Object> array(JsonParser parser, int depth) throws IOException, Malformed {
        List<Object> items = new ArrayList<>();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            items.add(value(parser, depth + 1));
        }
        return Collections.unmodifiableList(items);
    }

    private static Object number(JsonParser parser) throws IOException, Malformed {
        String number = parser.getText();
        if (number.length() > MAX_NUMBER) {
            throw new Malformed("a number of more than " + MAX_NUMBER + " characters");
        }
        boolean whole = parser.currentToken() == JsonToken.VALUE_NUMBER_INT && number.length() <= MAX_LONG;
        return whole ? (Object) Long.valueOf(number) : Double.valueOf(number);
    }

    private static void write(Object value, JsonGenerator generator) throws IOException {
        if (value instanceof Map<?, ?> members) {
            generator.writeStartObject();
            for (Map.Entry<?, ?> member : members.entrySet()) {
                generator.writeFieldName(String.valueOf(member.getKey()));
                write(member.getValue(), generator);
            }
            generator.writeEndObject();
        } else if (value instanceof List<?> values) {
            generator.writeStartArray();
            for (Object one : values) {
                write(one, generator);
            }
            generator.writeEndArray();
        } else if (value instanceof String string) {
            generator.writeString(string);
        } else if (value == null || value instanceof Boolean || value instanceof Number) {
            generator.writeRawValue(String.valueOf(value));
        } else {
            throw new IllegalArgumentException("not written as JSON: " + value.getClass().getName());
        }
    }
}
