"""Whether two outcomes of a fetch decide alike."""

from robots_core.file import File
from robots_core.outcomes import outcome_of, read_outcome
from robots_core.robots.access import Access, Successful
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.judge import judge

AGENT = read_agent("ExampleBot")


def assert_word_decides_alike(access: Access) -> None:
    """Assert that what is read from the word of an outcome without a file decides as it does, and has its version."""
    if isinstance(access, Successful):
        assert outcome_of(access) == str(access.status)
        return
    again = read_outcome(outcome_of(access))
    for dialect in DIALECTS.values():
        for path in "/", "/robots.txt":
            for forbidden in False, True:
                verdict = judge(access, None, dialect, AGENT, path, forbidden=forbidden)
                assert judge(again, None, dialect, AGENT, path, forbidden=forbidden) == verdict, access
    assert File(again).version == File(access).version, access
    assert outcome_of(again) == outcome_of(access), access
