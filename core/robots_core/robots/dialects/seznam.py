"""SeznamBot and `v2`: as RFC 9309, but member lines end a run of User-agent lines, and Robot-version 2.0 has globs."""

from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.dialects.rfc9309 import RFC9309, RFC9309_TOKEN
from robots_core.robots.groups import MergedGroups, grammar
from robots_core.robots.lines import Form
from robots_core.robots.patterns import compile_seznam
from robots_core.robots.rates import SEZNAM_RATES

# A member line ends a run of User-agent lines like a rule does (spec B9, X3).
_GRAMMAR = grammar(rb"U[^ADVM]*(?:[ADVM][^U]*)?", forms=(Form.PROPER, Form.TOLERATED))

SEZNAM = Dialect(
    name="seznam",
    grammar=_GRAMMAR,
    token=RFC9309_TOKEN,
    select=lambda groups: MergedGroups(groups, RFC9309_TOKEN, version_2=True),
    compile=compile_seznam,
    rates=SEZNAM_RATES,
    like=RFC9309,
)

V2 = Dialect(
    name="v2",
    grammar=_GRAMMAR,
    token=RFC9309_TOKEN,
    select=lambda groups: MergedGroups(groups, RFC9309_TOKEN, version_2=True),
    compile=compile_seznam,
    like=RFC9309,
)
