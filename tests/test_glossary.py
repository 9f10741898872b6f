"""The pages of terms and the code name the same fields, and the glossary names no class."""

import json
import re

import pytest

from tests.glossary import DOCS, ROOT, rows


def test_every_field_of_the_api_is_defined() -> None:
    schemas = json.loads((ROOT / "openapi.json").read_text())["components"]["schemas"]
    assert set(rows("reference/fields.md")) == {
        name for schema in schemas.values() for name in schema.get("properties", ())
    }


@pytest.mark.parametrize("page", ["glossary.md", "reference/fields.md"])
def test_terms_are_in_order(page: str) -> None:
    names = [re.sub(r"[^a-z0-9]+", " ", name.lower()).strip() for name in rows(page)]
    assert len(names) > 100
    assert names == sorted(names)


def test_glossary_names_no_class() -> None:
    sources = [path for top in ("app", "core", "clients/python") for path in (ROOT / top).rglob("*.py")]
    classes = {name for path in sources for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)}
    assert len(classes) > 100
    pages = "".join((DOCS / page).read_text() for page in ("glossary.md", "reference/fields.md"))
    assert set(re.findall(r"`(\w+)`", pages)) & classes == set()
