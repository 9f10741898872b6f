"""For each warning a file that has it once and no other, with its line, words of its message, and the replacement."""

from typing import NamedTuple

from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.lines import LINE_LIMIT


class Fault(NamedTuple):
    """`instead` replaces the line; None if there is no replacement. `content_type` and `site` as for `lint`."""

    code: str
    body: bytes
    line: int
    says: str
    instead: str | None = None
    content_type: str | None = None
    site: str | None = None


def _rules(*lines: str) -> bytes:
    """A group for `*` with these lines from line 3 on."""
    return "\n".join(["User-agent: *", "Allow: /public", *lines]).encode()


FAULTS = [
    Fault("bom", b"\xef\xbb\xbfUser-agent: *\nDisallow: /x", 1, "Save it as UTF-8 without one"),
    Fault("file-truncated", b"User-agent: *\n" + b"#\n" * BODY_LIMIT, BODY_LIMIT // 2 - 6, "512,000 bytes"),
    Fault("html-body", b"<!doctype html><p>hello", 1, "status 404"),
    Fault("not-text-plain", b"User-agent: *\nDisallow:", 1, "Send it as text/plain", content_type="text/html"),
    Fault("non-utf8", _rules("Disallow: /a") + b"\nDisallow: /\xe9", 4, "Save it as UTF-8"),
    Fault("not-text", b"\x1f\x8b\x08\0\0\0\0\0", 1, "compressed by gzip"),
    Fault("not-text", "User-agent: *\nDisallow: /".encode("utf-16-le"), 1, "UTF-16 without a byte order mark"),
    Fault("line-truncated", _rules("Disallow: /" + "a" * LINE_LIMIT), 3, "16,663 bytes"),
    Fault("line-truncated", b"User-agent: *\r\r\n" + b"#" * (LINE_LIMIT + 1) + b"\rAllow: /", 3, "16,663 bytes"),
    Fault("several-directives-in-one-line", b"User-agent: * Disallow: /x", *(1, "", "User-agent: *\nDisallow: /x")),
    Fault(
        "several-directives-in-one-line",
        b'"User-agent: *\\nDisallow: /x/"',
        *(1, "'\\n' is text in a file", "User-agent: *\nDisallow: /x/"),
    ),
    Fault(
        "several-directives-in-one-line",
        _rules("Disallow: /x.phpDisallow: /y"),
        *(3, "a line of its own", "Disallow: /x.php\nDisallow: /y"),
    ),
    Fault(
        "several-directives-in-one-line",
        _rules("Disallow: /x User-agent: b", "Disallow: /y"),
        *(3, "a line of its own", "Disallow: /x\nUser-agent: b"),
    ),
    Fault(
        "several-directives-in-one-line",
        b"User-agent: *<br>Disallow: /x<br/>",
        *(1, "a line of its own", "User-agent: *\nDisallow: /x"),
    ),
    # What it would be for the agents above it is not clear.
    Fault("several-directives-in-one-line", b"User-agent: *\nUser-agent: b Disallow: /x", 2, "a line of its own"),
    Fault("several-directives-in-one-line", _rules("Disallow: /x User-agent: b"), 3, "a line of its own"),
    Fault("odd-character", _rules("Disallow: \u00a0/a"), 3, "U+00A0", "Disallow: /a"),
    Fault("odd-character", _rules("Disallow: /a\u200b"), 3, "U+200B", "Disallow: /a"),
    Fault("odd-character", _rules("Disallow: /a\u3000b"), 3, "U+3000"),
    Fault("odd-character", _rules("Disallow\uff1a/a"), 3, "U+FF1A", "Disallow: /a"),
    Fault("odd-character", _rules("Disallow:: /a"), 3, "A colon stands twice", "Disallow: /a"),
    Fault("no-colon", _rules("Disallow /x"), 3, "no colon in 'Disallow /x'", "Disallow: /x"),
    Fault("typo-key", _rules("Dissalow: /é"), 3, "Only some crawlers read 'Dissalow'", "Disallow: /é"),
    Fault("typo-key", b"User-agents: *\nAllow: /", 1, "Write 'User-agent: *'", "User-agent: *"),
    Fault("typo-key", _rules("Content-Signals: search=no"), 3, "", "Content-Signal: search=no"),
    Fault("key-read-by-prefix", _rules("Disallow-all: /"), 3, "Google reads 'Disallow-all: /'", "Disallow: /"),
    Fault("key-read-by-prefix", _rules("DisallowAITraining: /"), 3, "as Disallow", "Content-Signal: ai-train=no"),
    Fault("key-read-by-prefix", _rules("AllowAITraining: /a"), 3, "as Allow", "Content-Usage: /a train-ai=y"),
    Fault("key-read-by-prefix", _rules("Disallow-AI-Training: /"), 3, "Disallow", "Content-Signal: ai-train=no"),
    Fault("key-read-by-prefix", _rules("Disallow-Training: /a"), 3, "as Disallow", "Content-Usage: /a train-ai=n"),
    Fault("key-read-by-prefix", _rules("DisallowAITraining: /a b"), 3, "as Disallow"),
    Fault("key-read-by-prefix", _rules("DisallowAI: /"), 3, "Content-Signal states what AI may use"),
    Fault("key-read-by-prefix", _rules("Allow-AI: /"), 3, "Content-Signal states what AI may use"),
    Fault("key-read-by-prefix", _rules("AllowAIInference: /"), 3, "Content-Signal states what AI may use"),
    Fault("key-read-by-prefix", _rules("Disallow-LLM: /"), 3, "Content-Signal states what AI may use"),
    Fault("key-read-by-prefix", _rules("Disallow-images: /"), 3, "No other crawler that we know reads it."),
    Fault("key-read-by-prefix", _rules("Disallow; /x"), 3, "No other crawler", "Disallow: /x"),
    Fault("key-read-by-prefix", _rules("Disallow-AI /x"), 3, "Content-Signal states what AI may use"),
    Fault("key-read-by-prefix", _rules("Disallow;: /x"), 3, "No other crawler", "Disallow: /x"),
    Fault("unknown-key", _rules("Foo: bar"), 3, "No crawler that we know of reads 'Foo'"),
    Fault("unknown-key", _rules("Alow: /y"), 3, "Did you mean Allow?", "Allow: /y"),
    Fault("unknown-key", _rules("- Disallow: /y"), 3, "Did you mean Disallow?", "Disallow: /y"),
    Fault("unknown-key", _rules("<p>Disallow: /y</p>"), 3, "Did you mean Disallow?", "Disallow: /y"),
    Fault("unknown-key", _rules("site map: https://h/s"), 3, "reads 'site map'", "Sitemap: https://h/s"),
    Fault(
        "unknown-key",
        _rules("Sitemap-x: https://h/s"),
        3,
        "No crawler that we know of but Google's",
        "Sitemap: https://h/s",
    ),
    Fault("unknown-key", _rules("Our shop"), 3, "Begin the line with '#'", "# Our shop"),
    Fault("unknown-key", _rules("foo bar baz # x"), 3, "reads 'foo bar baz'", "# foo bar baz"),
    Fault("unknown-key", _rules("foo"), 3, "reads 'foo'", "# foo"),
    Fault("unknown-key", _rules("Disallow /x /y"), 3, "no colon in", "Disallow: /x\nDisallow: /y"),
    Fault("unknown-key", _rules("Allow all of our pages"), 3, "no colon in"),
    Fault("unknown-key", _rules("User-agent all other robots"), 3, "no colon in"),
    Fault("unknown-key", _rules("Sitemap of the shop"), 3, "no colon in"),
    Fault("unknown-key", _rules("Content-usage /x train-ai=n"), 3, "no colon", "Content-Usage: /x train-ai=n"),
    Fault("unknown-key", _rules("AI-Disallow: /y"), 3, "reads 'AI-Disallow'"),
    Fault("unknown-key", _rules("NoAllow: /y"), 3, "reads 'NoAllow'"),
    Fault("empty-agent-token", b"User-agent:\nDisallow: /x", 1, "names no crawler"),
    Fault("empty-agent-token", b"User-agent: *bot\nDisallow: /x", 1, "'*bot' names no crawler"),
    Fault("empty-agent-token", "User-agent: “GPTBot”\nAllow: /".encode(), 1, "names no crawler", "User-agent: GPTBot"),
    Fault(
        "agent-is-user-agent-header",
        b"User-agent: Mozilla/5.0 (compatible; GPTBot/1.2)\nDisallow: /",
        *(1, "no crawler's name", "User-agent: GPTBot"),
    ),
    Fault(
        "agent-is-user-agent-header",
        b"User-agent: Mozilla/5.0 (compatible;contxbot/1.0)\nDisallow: /",
        *(1, "no crawler's name", "User-agent: contxbot"),
    ),
    Fault("agent-is-user-agent-header", b"User-agent: Mozilla/4.0 (MSIE 4.0)\nDisallow: /", 1, "product token"),
    Fault(
        "several-agents-in-one-line",
        b"User-agent: Googlebot, Bingbot\nDisallow: /x",
        *(1, "names one crawler", "User-agent: Googlebot\nUser-agent: Bingbot"),
    ),
    Fault(
        "several-agents-in-one-line",
        b"User-agent: GPTBot ClaudeBot\nDisallow: /x",
        *(1, "names one crawler", "User-agent: GPTBot\nUser-agent: ClaudeBot"),
    ),
    Fault("agent-cut-short", "User-agent: Bär\nDisallow: /x".encode(), 1, "Only 'B' is read of 'Bär'"),
    Fault("agent-cut-short", b"User-agent: all but Googlebot\nDisallow: /x", 1, "Only 'all' is read"),
    Fault("agent-cut-short", b"User-agent: Googlebot*\nDisallow: /x", 1, "'Googlebot*'", "User-agent: Googlebot"),
    Fault("agent-misspelt", b"User-agent: Googelbot\nDisallow: /x", 1, "'Googelbot'", "User-agent: Googlebot"),
    Fault("agent-misspelt", b"User-agent: Google\nDisallow: /x", 1, "No crawler 'Google'", "User-agent: Googlebot"),
    Fault("agent-misspelt", b"User-agent: all\nDisallow: /x", 1, "No crawler 'all'", "User-agent: *"),
    Fault("agent-misspelt", b"User-agent: GPT-Bot\nDisallow: /x", 1, "No crawler 'GPT-Bot'", "User-agent: GPTBot"),
    Fault("agent-in-two-groups", b"User-agent: a\nAllow: /x\n\nUser-agent: A\nAllow: /y", 4, "Line 1 names 'A', too"),
    Fault("rule-before-agent", b"Disallow: /x", 1, "'User-agent: *' above it", "User-agent: *\nDisallow: /x"),
    # Crawlers of the draft of 1996 obey the first group for all alone.
    Fault("rule-before-agent", b"Disallow: /x\n\nUser-agent: *\nDisallow: /y", 1, "Move it below"),
    Fault("member-before-agent", b"Crawl-delay: 5\nUser-agent: *\nDisallow: /x", 1, "Move it below"),
    Fault("member-before-agent", b"Content-Usage: train-ai=n\n\nUser-agent: *\nDisallow: /x", 1, "no crawler obeys"),
    Fault(
        "group-without-rules",
        b"User-agent: *\nSitemap: https://h/s\n\nUser-agent: b\nUser-agent: c\nDisallow: /x",
        *(1, "those below line 5 are for it and for 'b', 'c'"),
    ),
    Fault(
        "rate-between-agents", b"User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /", 2, "Crawl-delay is between"
    ),
    Fault("whole-site-closed", b"User-agent: *\nDisallow: /", 2, "closes the whole site"),
    Fault("whole-site-closed", b"User-agent: *\nDisallow: /*$", 2, "write 'Disallow:'"),
    Fault("whole-site-closed", b"User-agent: b\nUser-agent: *\nDisallow: /", 3, "give the '*' of line 2 a group"),
    Fault("whole-site-closed", b"User-agent: a\nAllow: /\nUser-agent: *\nDisallow: *", 4, "no group"),
    Fault("rule-no-slash", _rules("Disallow: private"), 3, "never matches", "Disallow: /private"),
    Fault("rule-no-slash", _rules("Disallow: https://h/private"), 3, "a path, not a URL", "Disallow: /private"),
    Fault("rule-no-slash", _rules("Disallow: “/private”"), 3, "without quotes", "Disallow: /private"),
    Fault("rule-no-slash", _rules("Disallow: all"), 3, "an empty Disallow"),
    Fault("rule-no-slash", _rules("Disallow: (/a)"), 3, "never matches"),
    Fault("rule-no-slash", _rules("Disallow: h.example/a"), 3, "", "Disallow: /a", site="https://h.example"),
    Fault("rule-no-slash", _rules("Disallow: b.example/a"), 3, "never matches", site="https://h.example"),
    Fault("rule-no-slash", _rules("Disallow: index.php/a"), 3, "never matches", "Disallow: /index.php/a"),
    Fault("rule-no-slash", _rules("Disallow: .pdf$"), 3, "never matches", "Disallow: /*.pdf$"),
    Fault("rule-no-slash", _rules("Disallow: ?id="), 3, "never matches", "Disallow: /*?id="),
    Fault("rule-no-slash", _rules("Disallow: \\private\\"), 3, "never matches", "Disallow: /private/"),
    Fault("rule-no-slash", _rules("Disallow: https://h/"), 3, "'/' is the whole site"),
    Fault("rule-no-slash", _rules("Disallow: http://b/x"), 3, "speaks for https://a alone", site="https://a"),
    Fault(
        "rule-no-slash",
        _rules("Disallow: www.b.com/x"),
        3,
        "a path, not a URL",
        "Disallow: /x",
        site="https://www.b.com",
    ),
    Fault("regular-expression", _rules("Disallow: ^/a"), 3, "looks like a regular", "Disallow: /a"),
    Fault("regular-expression", _rules("Disallow: ^/a/.*\\.php$"), 3, "expression", "Disallow: /a/*.php$"),
    Fault("regular-expression", _rules("Disallow: \\.php$"), 3, "expression", "Disallow: *.php$"),
    Fault("regular-expression", _rules("Disallow: /[0-9]+/"), 3, "no other wildcards than '*'"),
    Fault("regular-expression", _rules("Disallow: /.+"), 3, "no other wildcards than '*'"),  # all but the home page
    Fault("regular-expression", _rules("Disallow: ^/a.+\\.php$"), 3, "no other wildcards than '*'"),
    Fault("regular-expression", _rules("Disallow: /(a|b)/"), 3, "expression"),
    Fault("several-paths-in-one-line", _rules("Disallow: /a, /b"), 3, "has one path", "Disallow: /a\nDisallow: /b"),
    Fault("several-paths-in-one-line", _rules("Disallow: /a /b"), 3, "has one path", "Disallow: /a\nDisallow: /b"),
    Fault("path-cut-at-hash", _rules("Disallow: /a#b"), 3, "only '/a' is read", "Disallow: /a"),
    Fault("path-cut-at-hash", b"User-agent: X\nDisallow: /#all", 2, "This is the whole site."),
    Fault("path-cut-at-hash", _rules("Disallow: /a&#x3D;b"), 3, "Write the character that '&#x3D;b' stands for"),
    Fault("path-ends-in-sign", _rules("Disallow: /a;"), 3, "ends in ';'"),
    Fault("path-ends-in-sign", _rules("Disallow: /a<br>"), 3, "ends in '<br>'"),
    Fault("several-paths-in-one-line", _rules("Disallow: /a;/b"), 3, "one path", "Disallow: /a\nDisallow: /b"),
    Fault("several-paths-in-one-line", _rules("Disallow: /a //"), 3, "one path"),
    Fault("several-paths-in-one-line", _rules("Disallow: /a /"), 3, "one path"),
    Fault("rule-no-slash", _rules("Disallow: nothing here"), 3, "never matches"),
    Fault("rule-no-slash", _rules("Disallow: = /a"), 3, "never matches"),
    Fault("rule-no-slash", _rules("Disallow: http:/a"), 3, "never matches"),
    Fault("path-ends-in-sign", _rules("Disallow: /a/,"), 3, "ends in ','"),
    Fault("read-by-one-dialect-only", _rules("Disallow: /a b c"), 3, "draft of 1996", "Disallow: /a%20b%20c"),
    *(
        Fault("read-by-one-dialect-only", _rules(f"Disallow: {path}"), 3, "A note begins with '#'")
        for path in ("/ a", "/a // b", "/a ; b", "/a <!-- b -->", "/a (b)", "/a -- b")
    ),
    Fault("duplicate-rule", _rules("Disallow: /a", "Disallow: /b", "Disallow: /a"), 5, "Line 3 says the same"),
    Fault("shadowed-rule", _rules("Disallow: /a/b/c", "Disallow: /a/b"), 3, "The Disallow of line 4 covers"),
    Fault("allowed-and-disallowed", _rules("Disallow: /public"), 3, "Line 2 allows the same path"),
    Fault("rate-malformed", _rules("Request-rate: 5"), 3, "'5' is not whole documents"),
    Fault("rate-malformed", _rules("Crawl-delay: 5s"), 3, "'5s'", "Crawl-delay: 5"),
    Fault("rate-malformed", _rules("Crawl-delay: 10;"), 3, "'10;'", "Crawl-delay: 10"),
    Fault("rate-malformed", _rules("Crawl-delay: .5"), 3, "'.5'", "Crawl-delay: 0.5"),
    Fault("rate-malformed", _rules("Crawl-delay: 2,5"), 3, "'2,5'", "Crawl-delay: 2.5"),
    Fault("rate-window", _rules("Request-rate: 1/5s 18-19"), 3, "HHMM-HHMM", "Request-rate: 1/5s 1800-1900"),
    Fault("rate-window", _rules("Visit-time: 6 to 9"), 3, "HHMM-HHMM", "Visit-time: 0600-0900"),
    Fault("rate-window", _rules("Visit-time: always"), 3, "HHMM-HHMM"),
    Fault("rate-clamped", _rules("Request-rate: 1/60s"), 3, "10 s", "Request-rate: 1/10s"),
    Fault("rate-clamped", _rules("Request-rate: 1/60s 1800-1900"), 3, "10 s", "Request-rate: 1/10s 1800-1900"),
    Fault(
        "crawl-delay-ignored", b"User-agent: Googlebot\nAllow: /\nCrawl-delay: 5", 3, "Googlebot ignores Crawl-delay"
    ),
    Fault(
        "crawl-delay-ignored",
        b"User-agent: SeznamBot\nAllow: /\nCrawl-delay: 5",
        *(3, "SeznamBot ignores", "Request-rate: 1/5s"),
    ),
    Fault("crawl-delay-large", _rules("Crawl-delay: 60"), 3, "at most 1,440 pages a day", "Crawl-delay: 10"),
    Fault("version-misplaced", _rules("Robot-version: 2.0"), 3, "right below the agents"),
    Fault("version-misplaced", b"User-agent: *\nRobot-version: 3\nAllow: /", 2, "'3' has no effect"),
    Fault("deprecated", b"User-agent: *\nRobot-version: 2.0\nAllow: /x", 2, "version 1.0"),
    Fault("deprecated", _rules("Noindex: /x"), 3, "X-Robots-Tag"),
    Fault("deprecated", b"Host: example.com", 1, "Redirect to the main host"),
    Fault("sitemap-not-absolute", b"Sitemap: /s.xml", 1, "with scheme and host"),
    Fault("sitemap-not-absolute", b"Sitemap: www.h/s.xml", 1, "", "Sitemap: https://www.h/s.xml"),
    Fault("sitemap-not-absolute", b"Sitemap: /s.xml", 1, "", "Sitemap: https://h/s.xml", site="https://h"),
    Fault("sitemap-not-absolute", b"Sitemap: http://h i/s", 1, "with scheme and host"),
    Fault("sitemap-not-absolute", b"Sitemap: http//h.e/s.xml", 1, "with scheme and host", site="https://h.e"),
    Fault("sitemap-not-absolute", b"Sitemap: https/h.e/s.xml", 1, "with scheme and host", site="https://h.e"),
    Fault(
        "sitemap-not-absolute",
        b"Sitemap: http://h/a http://h/b",
        *(1, "has one URL", "Sitemap: http://h/a\nSitemap: http://h/b"),
    ),
    Fault(
        "sitemap-not-absolute",
        b"Sitemap: http://h/a,http://h/b",
        *(1, "has one URL", "Sitemap: http://h/a\nSitemap: http://h/b"),
    ),
    Fault("sitemap-not-absolute", b"Sitemap: http://https://h.e/a", 1, "stands twice", "Sitemap: https://h.e/a"),
    Fault("license-not-absolute", b"License: l.xml", 1, "", "License: http://h:8/l.xml", site="http://h:8"),
    Fault("usage-malformed", _rules("Content-Signal: search=maybe"), 3, "search, ai-input and ai-train"),
    Fault(
        "usage-malformed",
        _rules('Content-Signal: ai-train="no"; search=yes'),
        *(3, "", "Content-Signal: ai-train=no, search=yes"),
    ),
    Fault("usage-malformed", _rules("Content-Signal: ai-traain=no"), 3, "", "Content-Signal: ai-train=no"),
    Fault("usage-malformed", _rules("Content-Usage: /x ai-train=no"), 3, "y or n", "Content-Usage: /x train-ai=n"),
    Fault("usage-malformed", _rules("Content-Usage: train-ai=n,,"), 3, "", "Content-Usage: train-ai=n"),
    Fault("usage-malformed", _rules("Content-Usage: *.pdf train-ai=n"), 3, "", "Content-Usage: /*.pdf train-ai=n"),
    Fault("usage-malformed", _rules("Content-Usage: .pdf train-ai=no"), 3, "", "Content-Usage: /*.pdf train-ai=n"),
    Fault("usage-malformed", _rules("Content-Usage: a/ train-ai=n"), 3, "", "Content-Usage: /a/ train-ai=n"),
    Fault("usage-malformed", _rules("Content-Usage: shop train-ai=n"), 3, "y or n"),
    Fault("usage-malformed", _rules("Content-Usage: search = no"), 3, "", "Content-Usage: search=n"),
    Fault("usage-malformed", _rules("Content-Signal: /x search=no"), 3, "", "Content-Usage: /x search=n"),
    Fault("usage-malformed", _rules("Content-Signal: /x ai-train=no"), 3, "", "Content-Usage: /x train-ai=n"),
    Fault("usage-malformed", _rules("Content-Signal: /x ai-input=no"), 3, "yes or no"),
    Fault(
        "signal-in-last-group",
        b"User-agent: *\nDisallow: /a\n\nUser-agent: GPTBot\nDisallow: /b\n\nContent-Signal: ai-train=no",
        *(7, "binds only 'GPTBot'"),
    ),
    Fault(
        "signal-in-last-group",
        b"User-agent: a\nUser-agent: b\nAllow: /\n\n# For all\nSitemap: http://h/\nContent-Signal: search=yes",
        *(7, "binds only 'a', 'b'"),
    ),
    Fault(
        "signal-in-last-group",
        b"User-agent: *\nDisallow: /a\n\nUser-agent: GPTBot\nDisallow: /b\nContent-Signal: ai-train=no\n# end",
        *(6, "binds only 'GPTBot'"),
    ),
]

TOGETHER = Fault(
    "v2-root-only", b"User-agent: *\nRobot-version: 2.0\nDisallow: /", 3, "the root page alone", "Disallow: /*"
)
"""The only warning that never comes alone, since Robot-version is also deprecated."""

CLEAN = (
    b"User-agent: *\nAllow: /a\nDisallow: /\nCrawl-delay: 5\nContent-Signal: search=yes, ai-train=no, use=full\n"
    b"Content-Usage: /x train-ai=n, search=y\n\n\n# a comment\nSitemap: http://h/s.xml\nLicense: https://h/l.xml\n"
    b"Clean-param: a /b\nLLM-policy: /x\n\nUser-agent: MJ12bot\nUser-agent: 360Spider\nUser-agent: GPTBot/1.2\n"
    b"Disallow: /*.php$ # none of these\nDisallow: /search?q=\nDisallow: /a,b;c\nAllow: /a/[id]/(x)\nDisallow: /.*\n"
)
