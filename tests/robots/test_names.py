"""Names that are looked for in one text are found as if each were looked for alone."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.compiled.names import Names

LETTERS = "ab_-9"


def plainly(text: str, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in text), None)


@pytest.mark.parametrize("length", [5, 1000, 1001, 1500, 5000])
@pytest.mark.parametrize("letters", [2, 3, 5])
def test_the_first_name_that_stands_is_found(length: int, letters: int) -> None:
    random = Random(f"{length} {letters}")
    for _ in range(100):
        text = "".join(random.choices(LETTERS[:letters] + "\n", k=length))
        names = ["".join(random.choices(LETTERS[:letters], k=random.randrange(1, 15))) for _ in range(40)]
        begin = random.randrange(length)
        names.insert(random.randrange(40), text[begin : begin + random.randrange(1, 40)])
        searched = Names(text)
        for count in (1, 16, 41):
            asked = tuple(random.sample(names, count))
            assert searched.first(asked) == plainly(text, asked)
        assert [searched.find(name) for name in names] == [text.find(name) for name in names]


@given(st.text(st.characters(max_codepoint=255)), st.lists(st.text(max_size=4)))
def test_any_names_are_looked_for_in_any_text(text: str, names: list[str]) -> None:
    for searched in (text, text + "ab" * 600):
        assert Names(searched).first(tuple(names)) == plainly(searched, tuple(names))
        assert [Names(searched).find(name) for name in names] == [searched.find(name) for name in names]


def test_names_of_any_length_and_of_all_octets_are_looked_for() -> None:
    octets = "".join(map(chr, range(256)))
    text = octets * 300
    beside = octets[1:] + octets[:1]
    names = (beside * 299 + "b", octets[:100] + "b", beside * 256 + "b", octets * 200, beside * 10)
    for count in range(len(names) + 1):
        assert Names(text).first(names[:count]) == plainly(text, names[:count])
    assert [Names(text).find(name) for name in names] == [text.find(name) for name in names]


def test_a_text_of_more_than_octets_is_refused() -> None:
    with pytest.raises(ValueError, match="one octet"):
        Names("Ā")
