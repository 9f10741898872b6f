"""What compiled code loses, if it loses any."""

import gc
import tracemalloc
from collections.abc import Callable


def left_behind(work: Callable[[], object]) -> int:
    """How many more octets are taken once `work` was done 200 times.

    The smallest object there is, lost each time, would be 3,200; the interpreter itself keeps some.
    """
    for _ in range(20):
        work()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
