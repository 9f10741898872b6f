"""Notes about words in headers and meta tags that are meant for crawlers and have no effect (spec H2)."""

import pytest

from robots_core.meta_tags import read_metas
from robots_core.purposes.page import PageField, unknown_words
from robots_core.robots.indexing import EFFECTS, FIELD_NAME, VALUED, effective
from robots_core.tag_notes import WORDS_NOTED, meant_rules, tag_notes

AGENTS = ("googlebot",)
SEPARATORS = [" ", ";", "; ", "/", "|", " | ", "+", ".", " and ", "\t", "\u00a0", "\uff0c", "\u3001", ",\u200b "]


def notes(header: str = "", html: str = "") -> list[str]:
    found = effective(AGENTS, [header] if header else [], read_metas(html, 10_000).tags)
    return [note.message for note in tag_notes(found.unknown, AGENTS)]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_rules_without_commas_between_are_noted_with_them(separator: str) -> None:
    """In a tag and in a header, for every pair of rules."""
    rules = sorted(EFFECTS)
    for one, other in zip(rules, [*rules[1:], rules[0]], strict=True):
        written = f"{one}{separator}{other}"
        for said in notes(written), notes(html=f'<meta name="robots" content="{written}">'):
            if "," in separator:
                assert f"Write {other!r}." in said[0], (written, said)
            elif "and" in separator:
                assert said[0].startswith("No crawler reads"), (written, said)
            else:
                assert f"Write '{one}, {other}'." in said[0], (written, said)


@pytest.mark.parametrize("rule", sorted(EFFECTS))
def test_no_rule_is_noted(rule: str) -> None:
    assert notes(rule) == notes(f"googlebot: {rule}, otherbot: x y z") == []
    assert notes(html=f"<meta name=googlebot content='{rule.upper()} ,'><meta name=author content='A. B.'>") == []
    assert notes(html="<meta property='og:title' content=x><meta name='twitter:card' content=robots>") == []


@pytest.mark.parametrize("valued", ["max-snippet:-1", "max-image-preview:Large", "unavailable_after: 25 Jun 2030"])
def test_no_rule_with_a_value_is_noted(valued: str) -> None:
    assert notes(valued) == notes(html=f'<meta name="robots" content="{valued}, noindex">') == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no-index", "noindex"),
        ("no index", "noindex"),
        ("no_follow", "nofollow"),
        ("no-index no-follow", "noindex, nofollow"),
        ('"noindex"', "noindex"),
        ("\u201cnoindex\u201d", "noindex"),
        ("noindex.", "noindex"),
        ("nonindex", None),
        ("noidnex", "noindex"),
        ("nofolow", "nofollow"),
        ("max-snippet=20", "max-snippet:20"),
        ("maxsnippet:20", "max-snippet:20"),
        ("max-snippet", "max-snippet:50"),
        ("max-image-preview=big", "max-image-preview:large"),
        ("unavailable-after: soon", "unavailable_after: 2030-01-31"),
        ("disallow", None),
        ("x", None),
        ("", None),
    ],
)
def test_the_right_spelling_is_found(written: str, meant: str | None) -> None:
    assert meant_rules(written) == meant


@pytest.mark.parametrize("name", sorted(VALUED))
def test_every_example_is_a_rule(name: str) -> None:
    example = meant_rules(name)
    assert example is not None
    assert effective(AGENTS, [example], []).sources


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ('<meta property="robots" content="noindex">', 'Write name="robots".'),
        ('<meta http-equiv="X-Robots-Tag" content="noindex">', 'Write name="robots".'),
        ('<meta itemprop=Googlebot content="noindex">', 'Write name="robots".'),
        (
            '<meta name="googlebot, bingbot" content="noindex">',
            'Write name="robots" for all crawlers, or a tag for each.',
        ),
        (
            '<meta name="robots googlebot" content="noindex">',
            'Write name="robots" for all crawlers, or a tag for each.',
        ),
        ('<meta name="robot" content="noindex">', 'Write name="robots" for all crawlers, or a tag for each.'),
        ('<meta name="X-Robots-Tag" content="noindex">', 'Write name="robots" for all crawlers, or a tag for each.'),
        ('<meta name="robots" content="noindex: true">', "Write 'noindex'."),
    ],
)
def test_a_tag_that_no_crawler_reads_is_noted(html: str, said: str) -> None:
    [note] = notes(html=html)
    assert said in note
    assert "(meta 1), so it has no effect" in note


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (f"{FIELD_NAME}: noindex", "Write the rules alone"),
        ("noindex: true", "'noindex:' (header 1), so it has no effect. Write 'noindex'."),
        ("googlebot, bingbot: noindex", "'googlebot' (header 1), so it has no effect. Write 'googlebot: noindex'"),
        ("googlebot: no-index", "Write 'noindex'."),
    ],
)
def test_a_header_that_no_crawler_reads_is_noted(header: str, said: str) -> None:
    [note] = notes(header)
    assert said in note


def test_notes_are_bounded_and_say_a_word_once() -> None:
    assert len(notes(", ".join(["x"] * 100))) == 1
    assert len(notes(", ".join(f"x{at}" for at in range(1000)))) == WORDS_NOTED
    assert all(len(note) < 400 for note in notes("y" * 8000))


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("content-signal", "ai-train=no; search=yes", "ai-train=no, search=yes"),
        ("content-signal", 'ai-train="no"', "ai-train=no"),
        ("content-signal", "train-ai=n", "ai-train=no"),
        ("content-signal", "ai-train: disallow, search: allow", None),
        ("content-usage", "ai-train=no, search=yes", "train-ai=n, search=y"),
        ("content-usage", "train-ai=n;", "train-ai=n"),
        ("content-usage", "train-ai=no", "train-ai=n"),
        ("tdm-reservation", "true", None),
        ("content-signal", "search=maybe", None),
    ],
)
def test_a_statement_about_use_in_unknown_words_is_noted(name: str, value: str, instead: str | None) -> None:
    [unknown] = unknown_words([PageField("header 1", name, value)])
    [note] = tag_notes([unknown], AGENTS)
    assert note.message.startswith(f"No crawler reads {unknown.rule!r} (header 1), so it has no effect.")
    if instead is not None:
        assert note.message.endswith(f" Write {instead!r}.")
        assert not list(unknown_words([PageField("header 1", name, instead)]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content-signal", "search=yes, ai-train=no, use=reference"),
        ("content-signal", "AI-Train=Disallow"),
        ("content-usage", "train-ai=n;x=1, other=1"),
        ("content-usage", "train-ai=disallow"),
        ("tdm-reservation", " 1 "),
        ("tdm-policy", "x"),
        ("author", "A. B."),
    ],
)
def test_a_statement_about_use_that_is_read_is_not_noted(name: str, value: str) -> None:
    assert not list(unknown_words([PageField("header 1", name, value)]))
