package org.apache.nutch.protocol;

public final class Content {}
