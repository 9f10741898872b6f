"""RFC 9309: tokens of letters, digits, `-` and `_`; the longest rule wins; escapes are compared as in RFC 3986."""

from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.groups import MergedGroups, grammar, token_pattern
from robots_core.robots.lines import Form
from robots_core.robots.patterns import compile_rfc

# The RFC's grammar has no digits, but one real file in seven has tokens with digits. Without them, the tokens of two
# crawlers could be the same (spec C2).
RFC9309_TOKEN = token_pattern("a-z0-9_-")

RFC9309 = Dialect(
    name="rfc9309",
    # A run of User-agent lines ends at the first rule; the group ends at the next User-agent line (spec B8, B9).
    grammar=grammar(rb"U[^AD]*(?:[AD][^U]*)?", forms=(Form.PROPER, Form.TOLERATED)),
    token=RFC9309_TOKEN,
    select=lambda groups: MergedGroups(groups, RFC9309_TOKEN),
    compile=compile_rfc,
)
