"""Google's published parser: keys by prefix, escapes compared as written, index pages as directories."""

from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.groups import MergedGroups, grammar, token_pattern
from robots_core.robots.lines import Form, Key
from robots_core.robots.patterns import compile_google
from robots_core.robots.rates import NO_RATES

GOOGLE_TOKEN = token_pattern("a-z_-")

GOOGLE = Dialect(
    name="google",
    grammar=grammar(
        rb"U[^AD]*(?:[AD][^U]*)?",
        forms=tuple(Form),
        # Keys of other robots that begin with the name of a rule (spec B6, I5).
        by_prefix={Key.ALLOW_AI_TRAINING: Key.ALLOW, Key.DISALLOW_AI_TRAINING: Key.DISALLOW},
    ),
    token=GOOGLE_TOKEN,
    select=lambda groups: MergedGroups(groups, GOOGLE_TOKEN),
    compile=compile_google,
    rates=NO_RATES,
)
