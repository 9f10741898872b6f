"""A Sphinx extension: the search of the site finds HTTP statuses.

The search skips words that are numbers, but not entries of the index. So each page gets an entry for every status
that it names, at the section that names it most often. Those where it begins a row of a table, as in a list of
statuses, come first.
"""

import re
from collections import Counter
from http import HTTPStatus

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

_STATUS = re.compile(r"\b[345][0-9]{2}\b(?![.,][0-9])")
_KNOWN = {str(status.value) for status in HTTPStatus}


def _named(section: nodes.section) -> Counter[str]:
    """How often a section names each status, without the sections in it."""
    own = [child for child in section.children if not isinstance(child, nodes.section)]
    found = (status for child in own for status in _STATUS.findall(child.astext()))
    return Counter(status for status in found if status in _KNOWN)


def _listed(section: nodes.section) -> set[str]:
    """The statuses that begin a row of a table in this section."""
    return {status for row in section.findall(nodes.row) for status in _STATUS.findall(row[0].astext())}


def add_statuses(_: Sphinx, doctree: nodes.document) -> None:
    """Add the entries of a page."""
    sections = [(section, _named(section)) for section in doctree.findall(nodes.section)]
    for status in sorted({status for _, named in sections for status in named}):
        section = max(sections, key=lambda found: found[1][status])[0]
        entry = ("single", status, section["ids"][0], "main" if status in _listed(section) else "", None)
        section.insert(0, addnodes.index(entries=[entry]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", add_statuses)
    return {"parallel_read_safe": True}
