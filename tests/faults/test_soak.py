"""The soak of `make soak`, for some seconds: every fault once, and a service that is as it was before."""

from tests.faults.soak import soak


async def test_faults_of_the_store_and_of_origins_leave_nothing_behind() -> None:
    figures = await soak(4.0, origins=100, fault_seconds=0.2, more_memory=100 * 1024 * 1024)
    assert figures.faults == [], figures
    assert figures.tally.answers["disallow"] > 0
    assert figures.tally.answers["defer"] > 0
    assert len(figures.tally.faults) == 7
