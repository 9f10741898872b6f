"""Print what a service says of itself, and its decision about one URL: `ask.py [SERVICE [URL]]`.

Exits with 1 unless the service is ready and decides. For `helm test`, and for `kubectl exec`, since the image has no
shell and no curl. The API key is in the file that KEY_FILE names. Without one, a service with API keys is expected to
ask for it.
"""

import json
import os
import sys
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

SECONDS = 20.0
"""For an answer; a fetch takes 10 s at most by default."""


def ask(url: str, key: str | None) -> tuple[int, dict[str, object]]:
    """The status and the JSON of an answer. Raises OSError or HTTPException."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    try:
        # The URL is the operator's own.
        with urlopen(Request(url, headers=headers), timeout=SECONDS) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def main(service: str = f"http://127.0.0.1:{os.environ.get('PORT', '8080')}", url: str | None = None) -> int:
    """Ask, and print each answer on a line."""
    file = os.environ.get("KEY_FILE")
    key = None if file is None else Path(file).read_text().strip()
    questions = [f"{service}/readyz"]
    if url is not None:
        questions.append(f"{service}/v1/allowed?{urlencode({'url': url, 'agent': 'ExampleBot', 'wait': 10})}")
    failed = False
    for question in questions:
        try:
            status, answer = ask(question, key)
        except (URLError, HTTPException, OSError, ValueError) as error:
            print(f"{question}: {error}")
            return 1
        print(status, json.dumps(answer))
        asked_for_key = status == 401 and key is None
        failed = failed or not (status == 200 or asked_for_key)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
