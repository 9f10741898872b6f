"""SeznamBot and `v2`: as RFC 9309, but member lines end a run of User-agent lines, and Robot-version 2.0 has globs."""

from app.robots.dialects.dialect import Dialect
from app.robots.dialects.rfc9309 import RFC9309_TOKEN
from app.robots.groups import MergedGroups, grammar
from app.robots.lines import Form
from app.robots.patterns import compile_seznam
from app.robots.rates import SEZNAM_RATES

# A member line ends a run of User-agent lines like a rule does (spec B9, X3).
_GRAMMAR = grammar(rb"U[^ADVM]*(?:[ADVM][^U]*)?", forms=(Form.PROPER, Form.TOLERATED))

SEZNAM = Dialect(
    name="seznam",
    grammar=_GRAMMAR,
    token=RFC9309_TOKEN,
    select=lambda groups: MergedGroups(groups, RFC9309_TOKEN, version_2=True),
    compile=compile_seznam,
    rates=SEZNAM_RATES,
)

V2 = Dialect(
    name="v2",
    grammar=_GRAMMAR,
    token=RFC9309_TOKEN,
    select=lambda groups: MergedGroups(groups, RFC9309_TOKEN, version_2=True),
    compile=compile_seznam,
)
