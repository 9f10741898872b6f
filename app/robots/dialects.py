"""The dialects by name."""

from collections.abc import Mapping
from types import MappingProxyType

from app.robots.dialect import Dialect
from app.robots.draft1996 import DRAFT1996
from app.robots.google import GOOGLE
from app.robots.rfc9309 import RFC9309
from app.robots.seznam import SEZNAM, V2

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (RFC9309, GOOGLE, SEZNAM, DRAFT1996, V2)}
)
