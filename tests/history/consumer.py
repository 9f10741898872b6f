"""A consumer of a group that reads changes, prints their ids, and never acknowledges them: it waits to be killed.

python -m tests.history.consumer SERVICE_URL GROUP
"""

import json
import sys
import time
import urllib.request

with urllib.request.urlopen(f"{sys.argv[1]}/v1/changes?group={sys.argv[2]}&after=0&limit=2", timeout=60) as answer:
    sys.stdout.write(" ".join(json.loads(line)["id"] for line in answer) + "\n")
    sys.stdout.flush()
while True:
    time.sleep(60)
