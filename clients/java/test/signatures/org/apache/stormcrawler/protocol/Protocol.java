package org.apache.stormcrawler.protocol;

public interface Protocol {}
