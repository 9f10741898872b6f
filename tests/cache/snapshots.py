"""Any snapshot that the cache can write, as a strategy for Hypothesis."""

from dataclasses import replace

from hypothesis import strategies as st

from app.cache.freshness import Failing, Snapshot
from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable, Validators
from robots_core.times import LONGEST_DELTA

instants = st.floats(0, 253_402_300_799)
texts = st.none() | st.text(max_size=50)
statuses = st.integers(100, 999)
failures = st.builds(Unreachable, st.sampled_from(Cause), st.none() | statuses, st.none() | st.integers(0, 10**20))
runs = st.builds(Failing, instants, instants, st.integers(1, 10**9), failures)
files = st.builds(Successful, statuses, st.binary(max_size=200), st.booleans(), texts)
answers: st.SearchStrategy[Access] = st.one_of(
    files,
    st.builds(Unavailable, statuses, st.none() | st.sampled_from(Cause)),
    st.builds(Blocked, st.ip_addresses().map(str)),
)
rest = (instants, texts, st.builds(Validators, texts, texts), st.none() | st.floats(0, LONGEST_DELTA))
recent = st.one_of(
    st.builds(Snapshot, answers, *rest),
    st.builds(Snapshot, files, *rest, runs),
    st.tuples(runs, *rest).map(lambda parts: Snapshot(parts[0].failure, *parts[1:], parts[0])),
)
snapshots = recent | st.tuples(recent, st.floats(0, 1)).map(
    lambda it: replace(it[0], since=int(it[0].fetched_at * it[1]))
)
