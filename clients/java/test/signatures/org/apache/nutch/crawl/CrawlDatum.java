package org.apache.nutch.crawl;

public class CrawlDatum {}
