"""What a bundle counts of its parsed files is what they take, for one crawler and for many."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from robots_core.arrow import Bundle, decide
from tests.bulk.bundles import bundle_of
from tests.core.questions import host

ROOT = Path(__file__).parents[2]
CRAWLERS = ("GPTBot", "Googlebot", "CCBot", "bingbot", "SemrushBot", "SeznamBot", "Yandex", "Baiduspider", "Bytespider")
MEASURE = """
import sys
from random import Random
import pyarrow as pa
from robots_core.arrow import Bundle, decide
from tests.bulk.bundles import bundle_of
from tests.core.questions import host
from tests.corpus import real_files
from tests.robots.memory import in_use

bodies = Random(3).sample(list(real_files().values()), 400)
urls = [f"https://{host(file)}{path}" for file in range(400) for path in ("/", "/a?b")]
rows = [(url, agent) for url in urls for agent in sys.argv[1:]]
batch = pa.table(dict(zip(("url", "agent"), map(list, zip(*rows)))))
bundle = Bundle(bundle_of(bodies))
decide(batch, bundle)
bundle._forget()
before = in_use()
decide(batch, bundle)
counted, taken = bundle._size, in_use() - before
bundle._forget()
print(counted, taken, in_use() - before)
"""


@pytest.mark.parametrize("crawlers", [CRAWLERS[:1], CRAWLERS], ids=len)
def test_parsed_files_are_counted_as_what_they_take(crawlers: tuple[str, ...]) -> None:
    # tracemalloc does not see what C code allocates, so all goes to malloc, which tells the bytes in use.
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "PYTHONPATH": f"{ROOT}:{ROOT}/core"}
    command = [sys.executable, "-c", MEASURE, *crawlers]
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    counted, taken, left = map(int, ran.stdout.split())
    assert 0.9 < counted / taken < 1.2
    assert left < 0.05 * taken  # all of it is freed


def test_texts_that_name_one_crawler_share_what_was_found() -> None:
    bundle = Bundle(bundle_of([b"User-agent: GPTBot\nDisallow: /a"]))
    texts = ["GPTBot", *(f"Mozilla/5.0 AppleWebKit/{number}; compatible; GPTBot/{number}" for number in range(3000))]
    batch = pa.table({"url": [f"https://{host(0)}/a"] * len(texts), "agent": texts})
    assert set(decide(batch, bundle)["verdict"].to_pylist()) == {"disallow"}
    assert bundle._size < 10_000
