"""The image's HEALTHCHECK: exit with 0 if the service answers /healthz on PORT within 2 s, else print why not."""

import os
import sys
from http.client import HTTPConnection, HTTPException


def main() -> str | None:
    """What is wrong, or None; sys.exit turns that into 1 or 0."""
    connection = HTTPConnection("127.0.0.1", int(os.environ.get("PORT", "8080")), timeout=2.0)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        return f"/healthz is not answered: {error!r}"
    finally:
        connection.close()
    return None if status == 200 else f"/healthz is answered with {status}"


if __name__ == "__main__":
    sys.exit(main())
