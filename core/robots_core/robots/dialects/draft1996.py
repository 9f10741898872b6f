"""The draft of 1996: blank lines separate records; the first matching record and rule win (spec E)."""

from robots_core.robots.agents import Agent
from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.dialects.rfc9309 import RFC9309_TOKEN
from robots_core.robots.groups import FirstRecord, grammar
from robots_core.robots.lines import Form
from robots_core.robots.patterns import compile_draft


def names_of(agent: Agent) -> tuple[str, ...]:
    """The names of the agent; the draft has no fallback tokens (spec E2)."""
    return agent.names


DRAFT1996 = Dialect(
    name="draft1996",
    # An empty line ends a record (spec E5); misspelled keys are not accepted.
    grammar=grammar(rb"U[^ADB]*(?:[AD][^UB]*)?", forms=(Form.PROPER,)),
    token=RFC9309_TOKEN,
    select=FirstRecord,
    compile=compile_draft,
    tokens=names_of,
    forbidden_closes=True,
)
