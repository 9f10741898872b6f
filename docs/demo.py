"""Run the service and an example site that it may fetch from: `make demo`."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
PATIENCE = 60
"""Seconds that the service may take to start."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Log nothing: the service's log is enough."""


def main() -> int:
    """Serve until Ctrl-C or SIGTERM, or until the service ends."""
    port, site_port = int(os.environ.get("PORT", "8080")), int(os.environ.get("SITE_PORT", "9000"))
    for name, number in (("PORT", port), ("SITE_PORT", site_port)):
        if _listens(number):
            sys.stderr.write(f"Port {number} is in use. Choose another: {name}={number + 1} make demo\n")
            return 1
    site = ThreadingHTTPServer(("127.0.0.1", site_port), partial(_Quiet, directory=str(HERE / "example-site")))
    threading.Thread(target=site.serve_forever, daemon=True).start()
    settings = {"ALLOW_ADDRESSES": "127.0.0.0/8", "ACCESS_LOG": "false", **os.environ}
    service = subprocess.Popen([sys.executable, "-m", "app"], cwd=HERE.parent, env=settings)
    signal.signal(signal.SIGTERM, lambda *_: service.terminate())
    try:
        if _answers(f"http://127.0.0.1:{port}/readyz", service):
            sys.stdout.write(f"\nReady. Open http://127.0.0.1:{port}/ in a browser. Ctrl-C stops it.\n")
            token = os.environ.get("OPERATOR_TOKEN_FILE")
            if token and "API_KEYS_FILE" not in os.environ:
                sys.stdout.write(f"Operators' routes need a token: export ROBOTS_API_KEY=$(cat {shlex.quote(token)})\n")
            sys.stdout.write("\n")
            sys.stdout.flush()
        return service.wait()
    except KeyboardInterrupt:
        return service.wait()  # Ctrl-C has reached the service, too


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _answers(url: str, service: "subprocess.Popen[bytes]") -> bool:
    deadline = time.monotonic() + PATIENCE
    while service.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - the URL is ours
                return True
        except OSError:
            time.sleep(0.1)
    return False


if __name__ == "__main__":
    sys.exit(main())
