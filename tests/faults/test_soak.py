"""`make soak` for a few seconds: every fault once, and no leak."""

from tests.faults.soak import soak


async def test_faults_of_store_and_origins_leak_nothing() -> None:
    figures = await soak(4.0, origins=100, fault_seconds=0.2, more_memory=100 * 1024 * 1024)
    assert figures.faults == [], figures
    assert figures.tally.answers["disallow"] > 0
    assert figures.tally.answers["defer"] > 0
    assert len(figures.tally.faults) == 7
