package robotsdecisions;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON (RFC 8259), strictly, with bounded depth. Objects are read as Map, arrays as List, integers of up to 18 digits as
 * Long and other numbers as Double.
 */
final class Json {
    static final int MAX_DEPTH = 64;
    private static final int MAX_NUMBER = 64;

    /** Text that is not JSON, or exceeds a limit. */
    static final class Malformed extends Exception {
        private static final long serialVersionUID = 1;

        Malformed(String why, int at) {
            super(why + " at " + at);
        }
    }

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Read one value, which is the whole text. */
    static Object parse(String text) throws Malformed {
        Json json = new Json(text);
        Object value = json.value(0);
        json.space();
        if (json.at < text.length()) {
            throw json.malformed("text after the value");
        }
        return value;
    }

    /** Write a value in ASCII: URLs may contain lone surrogates, which UTF-8 cannot encode. */
    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private Object value(int depth) throws Malformed {
        space();
        if (at == text.length()) {
            throw malformed("no value");
        }
        if (depth > MAX_DEPTH) {
            throw malformed("more than " + MAX_DEPTH + " levels");
        }
        return switch (text.charAt(at)) {
            case '{' -> object(depth);
            case '[' -> array(depth);
            case '"' -> string();
            case 't' -> word("true", Boolean.TRUE);
            case 'f' -> word("false", Boolean.FALSE);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> object(int depth) throws Malformed {
        Map<String, Object> members = new LinkedHashMap<>();
        at++;
        if (skip('}')) {
            return members;
        }
        do {
            space();
            String name = string();
            expect(':');
            Object value = value(depth + 1);
            if (members.containsKey(name)) {
                throw malformed("the same name twice");
            }
            members.put(name, value);
        } while (skip(','));
        expect('}');
        return Collections.unmodifiableMap(members);
    }

    private List<Object> array(int depth) throws Malformed {
        List<Object> items = new ArrayList<>();
        at++;
        if (skip(']')) {
            return items;
        }
        do {
            items.add(value(depth + 1));
        } while (skip(','));
        expect(']');
        return Collections.unmodifiableList(items);
    }

    private String string() throws Malformed {
        if (at >= text.length() || text.charAt(at) != '"') {
            throw malformed("no string");
        }
        StringBuilder out = new StringBuilder();
        for (at++; at < text.length(); at++) {
            char one = text.charAt(at);
            if (one == '"') {
                at++;
                return out.toString();
            }
            if (one < ' ') {
                throw malformed("a control character in a string");
            }
            out.append(one == '\\' ? escaped() : one);
        }
        throw malformed("a string without an end");
    }

    /** The character of an escape; {@code at} is moved to its last character. */
    private char escaped() throws Malformed {
        at++;
        char one = at < text.length() ? text.charAt(at) : ' ';
        int simple = "\"\\/bfnrt".indexOf(one);
        if (simple >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(simple);
        }
        if (one != 'u' || text.length() - at <= 4) {
            throw malformed("an invalid escape");
        }
        int code = 0;
        for (int digits = 0; digits < 4; digits++) {
            char digit = text.charAt(++at);
            if (digit > 'f' || Character.digit(digit, 16) < 0) {
                throw malformed("an invalid escape");
            }
            code = code * 16 + Character.digit(digit, 16);
        }
        return (char) code;
    }

    private Object number() throws Malformed {
        int start = at;
        if (peek() == '-') {
            at++;
        }
        if (peek() == '0') {
            at++;
        } else {
            digits();
        }
        boolean whole = true;
        if (peek() == '.') {
            whole = false;
            at++;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            whole = false;
            at++;
            if (peek() == '+' || peek() == '-') {
                at++;
            }
            digits();
        }
        if (at - start > MAX_NUMBER) {
            throw malformed("a number of more than " + MAX_NUMBER + " characters");
        }
        String number = text.substring(start, at);
        if (whole && number.length() <= 18) {
            return Long.valueOf(number);
        }
        return Double.valueOf(number);
    }

    private void digits() throws Malformed {
        int start = at;
        while (peek() >= '0' && peek() <= '9') {
            at++;
        }
        if (at == start) {
            throw malformed("no value");
        }
    }

    private Object word(String word, Object value) throws Malformed {
        if (!text.startsWith(word, at)) {
            throw malformed("no value");
        }
        at += word.length();
        return value;
    }

    private char peek() {
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean skip(char wanted) {
        space();
        boolean found = peek() == wanted;
        if (found) {
            at++;
        }
        return found;
    }

    private void expect(char wanted) throws Malformed {
        if (!skip(wanted)) {
            throw malformed("no '" + wanted + "'");
        }
    }

    private void space() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
            at++;
        }
    }

    private Malformed malformed(String why) {
        return new Malformed(why, at);
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> members) {
            String separator = "{";
            for (Map.Entry<?, ?> member : members.entrySet()) {
                out.append(separator);
                write(String.valueOf(member.getKey()), out);
                out.append(':');
                write(member.getValue(), out);
                separator = ",";
            }
            out.append(members.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> values) {
            String separator = "[";
            for (Object one : values) {
                out.append(separator);
                write(one, out);
                separator = ",";
            }
            out.append(values.isEmpty() ? "[]" : "]");
        } else if (value instanceof String string) {
            out.append('"');
            string.chars().forEach(one -> {
                if (one >= ' ' && one <= '~' && one != '"' && one != '\\') {
                    out.append((char) one);
                } else {
                    out.append(String.format("\\u%04x", one));
                }
            });
            out.append('"');
        } else if (value == null || value instanceof Boolean || value instanceof Number) {
            out.append(value);
        } else {
            throw new IllegalArgumentException("not written as JSON: " + value.getClass().getName());
        }
    }
}
