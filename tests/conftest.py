"""Configuration of all tests, and their real Valkey."""

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.util import get_temp_dir
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Compiled modules are kept: each process of the tests would compile all of them anew, and some hundred processes that
# they start are ready a fifth sooner.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

os.umask(0o077)  # files that tests write are private, as key files must be

# What is made until the tests are collected stays. To look for garbage among it would take a third of that time.
gc.disable()

pytest_plugins = ["tests.valkey"]

TOOL_TESTS = [
    *("browser", "clients", "codemirror", "helm", "proxies", "upgrade", "wheel"),
    *("core/test_core_wheel.py", "docs/test_examples.py"),
]
"""What needs more than the service and its libraries. `make test-tools` runs it; tests/tools.sh says what that is."""

collect_ignore = ["bulk", *TOOL_TESTS]  # bulk: `make check NAME=engines`, which has libraries of its own

# Machines are shared, so the time of an example says nothing about the code. `make fuzz` searches longer.
settings.register_profile("shared", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


@pytest.fixture(scope="session", autouse=True)
def temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where temporary files are made, by the processes that tests start and kill too. It goes at the end."""
    # Outside: pytest keeps what the last runs made, and multiprocessing removes its own when this process ends.
    tmp_path_factory.getbasetemp()
    get_temp_dir()
    with (
        # Its path is short, for unix sockets. A killed service's watcher may be removing what is in it.
        tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True) as directory,
        pytest.MonkeyPatch.context() as patch,
    ):
        Path(directory).chmod(0o711)  # some tests give up the rights of root
        patch.setenv("TMPDIR", directory)
        patch.setattr(tempfile, "tempdir", directory)
        yield


@pytest.fixture
def garbage() -> Iterator[list[object]]:
    """The objects that only the garbage collector frees."""
    gc.collect()
    gc.disable()
    gc.freeze()  # or each collection would visit all objects of the tests' process
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield gc.garbage
    finally:
        gc.set_debug(0)
        gc.enable()
        gc.garbage.clear()


LONGEST = """
docs/test_examples.py wheel/test_wheel.py clients/test_scrapy.py clients/test_wheel.py clients/test_conformance.py
clients/test_crawls.py clients/test_crawlee_queue.py clients/test_javascript.py browser/test_accessibility.py
clients/test_unreachable.py clients/test_bundle_answers.py clients/test_java.py upgrade/test_two_releases.py
clients/test_crawlee.py core/test_core_wheel.py browser/test_page.py browser/test_many.py proxies/test_proxies.py
browser/test_versions.py browser/test_docs.py browser/test_keys.py browser/test_statements.py browser/test_outdated.py
browser/test_service_view.py browser/test_live.py helm/test_refusals.py helm/test_values.py faults/test_loop_blocking.py
api/test_schema.py faults/test_ending.py faults/test_restart.py lint/test_real_files.py robots/test_linear.py
pacing/test_crowds.py loop/test_helpers.py test_sweep.py faults/test_poison.py pacing/test_law.py faults/test_load.py
faults/test_many_questions.py faults/test_store.py faults/test_hostile_origins.py pacing/test_fleet.py
api/test_trial_rows.py robots/test_precedence.py faults/test_order.py robots/test_corpus.py
history/archive/test_queue.py faults/test_fleet.py pacing/test_reserve.py faults/test_slow_files.py
faults/test_rotated_password.py robots/test_size.py api/test_hostile.py cli/test_several.py faults/test_dead_origins.py
history/archive/test_index.py cli/test_listeners.py robots/test_globs.py faults/test_overload.py
faults/test_revoked_key.py pacing/test_key_shares.py store/test_connect.py store/test_refusals.py api/test_trials.py
cache/test_tracked_objects.py store/test_shards.py overrides/test_replica.py faults/test_dns.py test_house.py
api/test_answer_tags.py api/test_cycles.py deploy/test_valkey_group.py pacing/test_failover.py
"""
"""The files whose tests take longest, the longest first; those of `make test-tools`, then those of `make test`."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage from now on, among what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, so that no process is left alone with one at the end."""
    here = Path(__file__).parent
    order = {(here / name).resolve(strict=True): number for number, name in enumerate(LONGEST.split())}
    items.sort(key=lambda item: order.get(item.path, len(order)))
