package org.apache.hadoop.io;

public class Text {
    private final String text;

    public Text(String text) {
        this.text = text;
    }

    @Override
    public String toString() {
        return text;
    }
}
