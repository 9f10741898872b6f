"""RFC 9309: tokens of letters, digits, `-` and `_`; the longest rule wins; escapes compared as RFC 3986 means them."""

from app.robots.dialects.dialect import Dialect
from app.robots.groups import MergedGroups, grammar, token_pattern
from app.robots.lines import Form
from app.robots.patterns import compile_rfc

# The RFC's grammar has no digits, but one real file in seven does, and two crawlers must not be read as one (spec C2).
TOKEN = token_pattern("a-z0-9_-")

RFC9309 = Dialect(
    name="rfc9309",
    # A run of agents ends at the first rule; all that follows up to the next agent is theirs (spec B8, B9).
    grammar=grammar(rb"U[^AD]*(?:[AD][^U]*)?", forms=(Form.PROPER, Form.TOLERATED)),
    token=TOKEN,
    select=lambda groups: MergedGroups(groups, TOKEN),
    compile=compile_rfc,
)
