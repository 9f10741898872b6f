"""The dialects: how each kind of robot parses and applies a file. Each is one Dialect record."""

from collections.abc import Mapping
from types import MappingProxyType

from robots_core.robots.dialects.dialect import Dialect as Dialect
from robots_core.robots.dialects.draft1996 import DRAFT1996
from robots_core.robots.dialects.google import GOOGLE
from robots_core.robots.dialects.rfc9309 import RFC9309
from robots_core.robots.dialects.seznam import SEZNAM, V2

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (RFC9309, GOOGLE, SEZNAM, DRAFT1996, V2)}
)
"""All dialects by name."""
