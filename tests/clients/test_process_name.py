"""The name under which a process asks for slots."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

from robots_decisions.errors import Options
from robots_decisions.process import process_name


def _callers(_: int) -> set[str]:
    return {Options().caller, Options(agent="ExampleBot").caller, process_name()}


def test_all_clients_of_a_process_have_one_name() -> None:
    with ThreadPoolExecutor(8) as threads:
        names = set().union(*threads.map(_callers, range(100)))
    assert names == {process_name()}


def test_a_name_that_is_given_stays() -> None:
    assert Options(caller="pod-1").caller == "pod-1"


def test_each_forked_process_has_a_name_of_its_own() -> None:
    before = Options()  # a client that the children inherit
    own = before.caller
    names = [own]
    for _ in range(3):
        reader, writer = os.pipe()
        if not (child := os.fork()):
            os.write(writer, f"{before.caller} {Options().caller}".encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as said:
            inherited, new = said.read().split()
        os.waitpid(child, 0)
        assert inherited == new
        names.append(new)
    assert len(set(names)) == 4
    assert before.caller == own


def test_workers_of_pools_have_names_of_their_own() -> None:
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert process_name() not in pool.apply(_callers, (0,))
