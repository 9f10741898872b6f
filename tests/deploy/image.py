"""`make check NAME=image`: build the image, run it as in a cluster, and request a decision.

Uses Docker if there is an engine; otherwise, as root, buildah and podman on a base from debootstrap, with their storage
in build/image. The container has a read-only root file system, no capabilities, the engine's default seccomp profile,
and the network of this machine, since the origin is on loopback.
"""

import argparse
import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

import httpx

from app import __version__
from app.store.embedded import server_binary
from tests.origins import serve, text

ROOT = Path(__file__).parent.parent.parent
STORAGE = ROOT / "build" / "image"
IMAGE = "robots-decisions:check"
CONTAINER = f"robots-image-check-{os.getpid()}"
HYBRID = Path("/sys/fs/cgroup/unified")
START = 60.0
"""Seconds within which a container must answer."""

STOP = 20
"""Seconds within which it must stop after SIGTERM."""

HARDENED = (
    *("--read-only", "--tmpfs", "/tmp:rw,size=32m,noexec,nosuid,nodev"),
    *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    *("--network", "host"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"),
)
QUESTIONS = "tests/deploy/questions.lua"
TOOLS = ("buildah", "podman", "crun", "debootstrap")
FILE = "User-agent: *\nDisallow: /private/\nCrawl-delay: 5\n"
WRITE = "open('/srv/written', 'w')"
SCANNED = """
import pathlib, sys
system = pathlib.Path("/etc/os-release").read_text() + pathlib.Path("/etc/debian_version").read_text()
packages = [path.read_text() for path in pathlib.Path("/var/lib/dpkg/status.d").iterdir()]
known = all("Package: " in text and "Version: " in text for text in packages)
listed = any("Package: libssl3t64\\n" in text for text in packages)
sys.exit(not (known and listed and "ID=debian\\n" in system and "13." in system))
"""
COMPILED = """
import importlib, pathlib, sys
files = [path for path in pathlib.Path("/srv/robots_core/robots/_native").iterdir() if path.is_file()]
modules = {path.name.split(".")[0] for path in files if path.suffix == ".so"}
for module in modules:
    importlib.import_module(f"robots_core.robots._native.{module}")
sys.exit(not modules or any(path.suffix not in (".py", ".so") for path in files))
"""


class CheckFailed(RuntimeError):
    """The image is wrong or could not be built; the message says why."""


@dataclass(frozen=True, slots=True)
class Docker:
    """Docker, and a base image that it can pull."""

    command: str = "docker"
    options: Sequence[str] = ()

    def build(self, base: str | None, arguments: Sequence[str]) -> None:
        on = () if base is None else ("--build-arg", f"BASE={base}")
        call("docker", "build", "--quiet", *on, *arguments, "-t", IMAGE, ".")


@dataclass(frozen=True, slots=True)
class Podman:
    """buildah and podman, with a base image made here if none can be pulled."""

    command: str = "podman"
    # By default, podman mounts more writable paths, uses systemd timers for HEALTHCHECK, and needs a writable control
    # group. None of that concerns the image.
    options: Sequence[str] = ("--read-only-tmpfs=false", "--no-healthcheck", "--cgroups=disabled")

    def build(self, base: str | None, arguments: Sequence[str]) -> None:
        if base is None:
            base = "localhost/robots-base"
            if subprocess.run(["buildah", "inspect", base], capture_output=True).returncode != 0:
                say("making a base image with debootstrap")
                call("sh", "deploy/image/base.sh", base)
        # The OCI format has no HEALTHCHECK.
        call(
            "buildah",
            "bud",
            "--quiet",
            "--layers",
            "--format",
            "docker",
            "--build-arg",
            f"BASE={base}",
            *arguments,
            "-t",
            IMAGE,
            ".",
        )


Engine: TypeAlias = Docker | Podman
"""A builder of images, and a command that runs them with Docker's arguments."""


def main() -> int:
    """Build and check; exit with 1 and a sentence if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", help="the image to build on; default: the Dockerfile's, or one made here")
    parser.add_argument("--measure", action="store_true", help="say what a decision and a process take, by wrk")
    arguments = parser.parse_args()
    try:
        engine = chosen()
        build(engine, arguments.base)
        asyncio.run(check(engine))
        if arguments.measure:
            asyncio.run(measure(engine))
    except CheckFailed as error:
        say(f"the image failed a check: {error}")
        return 1
    return 0


def chosen() -> Engine:
    """The engine that is available here."""
    if shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True).returncode == 0:
        return Docker()
    if os.geteuid() != 0:
        raise CheckFailed("Docker does not answer, and building without it needs root.")
    if os.path.ismount(HYBRID) and not os.environ.get("ROBOTS_IMAGE_CHECK_ALONE"):
        # crun does not run if both versions of control groups are mounted, so use a mount namespace with one of them.
        alone = ("unshare", "--mount", "sh", "-c", f'umount {HYBRID} && exec "$@"', "sh")
        again = [*alone, sys.executable, "-m", "tests.deploy.image", *sys.argv[1:]]
        os.execvpe("unshare", again, {**os.environ, "ROBOTS_IMAGE_CHECK_ALONE": "1"})
    if not all(map(shutil.which, TOOLS)):
        say(f"installing {', '.join(TOOLS)}")
        call("apt-get", "update", "-qq")
        install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
        call("env", "DEBIAN_FRONTEND=noninteractive", *install, *TOOLS)
    STORAGE.mkdir(parents=True, exist_ok=True)
    # A short path, since it contains sockets, and the same for every run, since podman keeps using the first one.
    run = f"/run/robots-image-{crc32(bytes(ROOT))}"
    configuration = STORAGE / "storage.conf"
    configuration.write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{STORAGE}/storage"\nrunroot = "{run}"\n')
    os.environ["CONTAINERS_STORAGE_CONF"] = str(configuration)
    return Podman()


def build(engine: Engine, base: str | None) -> None:
    """Build IMAGE with its labels, and print its size."""
    facts = {
        "VERSION": __version__,
        "REVISION": call("git", "rev-parse", "HEAD").strip(),
        "CREATED": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    begun = time.monotonic()
    engine.build(base, [part for name, value in facts.items() for part in ("--build-arg", f"{name}={value}")])
    size = int(call(engine.command, "image", "inspect", "--format", "{{.Size}}", IMAGE))
    say(f"built in {time.monotonic() - begun:.0f} s: {size / 1e6:.1f} MB")
    label = '{{index .Config.Labels "org.opencontainers.image.version"}} {{.Config.User}}'
    found = call(engine.command, "image", "inspect", "--format", label, IMAGE).strip()
    if found != f"{__version__} 65532:65532":
        raise CheckFailed(f"its version and its user are {found!r}.")


async def check(engine: Engine) -> None:
    """Run IMAGE on loopback, with a Valkey and an origin, and send requests."""
    refuses_to_be_open(engine)
    async with serve(text(200, FILE)) as origin:
        with valkey() as store, running(engine, store) as url:
            async with httpx.AsyncClient(base_url=url) as client:
                await until_it_answers(engine, client)
                readiness = (await client.get("/readyz")).json()
                if readiness != {"status": "ready", "store": "ok"}:
                    raise CheckFailed(f"/readyz says {readiness}.")
                question = {"url": f"{origin.url}/private/page", "agent": "ExampleBot/1.0"}
                answer = (await client.get("/v1/allowed", params=question)).json()
                if (answer.get("verdict"), answer.get("reason")) != ("disallow", "rule"):
                    raise CheckFailed(f"a page that is disallowed by a rule is answered with {answer}.")
                test = {"robots": FILE, "urls": [f"http://h/{number}" for number in range(200)], "agents": ["a"]}
                tested = await client.post("/v1/test", json=test)
                if tested.status_code != 200 or len(tested.json()["rows"]) != 200:
                    raise CheckFailed(f"a helper process should decide a test of 200 rows: {tested.text:.300}.")
                if (await client.get("/")).status_code != 200:
                    raise CheckFailed("the page to try it on is not there.")
            say("it answers /healthz, /readyz, /, a decision, and a test by a helper process")
            await asyncio.to_thread(look_inside, engine)
            await asyncio.to_thread(end, engine)


def refuses_to_be_open(engine: Engine) -> None:
    """Check that without keys and without permission it does not listen on all addresses."""
    command = [
        engine.command,
        "run",
        "--rm",
        *HARDENED,
        *engine.options,
        "--env",
        "REDIS_URL=redis://127.0.0.1:1",
        IMAGE,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=START)
    if done.returncode != 3 or "ALLOW_UNAUTHENTICATED=1" not in done.stderr:
        raise CheckFailed(f"without keys it ended with {done.returncode} and printed {done.stderr[-1000:]!r}.")
    say("it does not listen to all without keys, and says what to set")


async def until_it_answers(engine: Engine, client: httpx.AsyncClient) -> None:
    """Wait until /healthz is answered."""
    deadline = time.monotonic() + START
    while True:
        try:
            if (await client.get("/healthz")).json() == {"status": "ok"}:
                return
        except httpx.TransportError:
            if call(engine.command, "inspect", "--format", "{{.State.Running}}", CONTAINER).strip() != "true":
                raise CheckFailed(f"it has ended; {logs_of(engine)}") from None
            if time.monotonic() > deadline:
                raise CheckFailed(f"it does not answer within {START:.0f} s; {logs_of(engine)}") from None
        await asyncio.sleep(0.1)


def look_inside(engine: Engine) -> None:
    """Check that a container cannot do anything but answer."""

    def inside(*command: str) -> int:
        return subprocess.run([engine.command, "exec", CONTAINER, *command], capture_output=True).returncode

    if inside("/usr/bin/python3", "/srv/health.py") != 0:
        raise CheckFailed("the command of HEALTHCHECK fails.")
    if inside("/usr/bin/python3", "-c", WRITE) == 0:
        raise CheckFailed("its root file system can be written to.")
    if inside("/usr/bin/python3", "-c", COMPILED) != 0:
        raise CheckFailed("the core's compiled modules are not there, do not load, or have their sources beside them.")
    if inside("/usr/bin/python3", "-c", SCANNED) != 0:
        raise CheckFailed("scanners would not find its release of Debian and its packages.")
    for shell in ("/bin/sh", "/bin/bash", "/bin/dash", "/usr/bin/sh"):
        if inside(shell, "-c", ":") == 0:
            raise CheckFailed(f"there is a shell in it, {shell}.")
    say("HEALTHCHECK passes; nothing can be written; the core is compiled; the image has no shell")


def end(engine: Engine) -> None:
    """Check that a container stops on SIGTERM, before it is killed."""
    begun = time.monotonic()
    call(engine.command, "stop", "-t", str(STOP), CONTAINER)
    seconds = time.monotonic() - begun
    code = int(call(engine.command, "inspect", "--format", "{{.State.ExitCode}}", CONTAINER))
    if code == 137:
        raise CheckFailed(f"it had to be killed after {seconds:.0f} s.")
    say(f"on SIGTERM it stops within {seconds:.1f} s, with exit code {code}")


async def measure(engine: Engine) -> None:
    """Print the memory of IMAGE after its start, and the CPU time of decisions from memory."""
    if shutil.which("wrk") is None:
        raise CheckFailed("wrk is not installed; install it to measure.")
    async with serve(text(200, FILE)) as origin:
        for access_log in ("true", "false"):
            with valkey() as store, running(engine, store, ACCESS_LOG=access_log) as url:
                async with httpx.AsyncClient(base_url=url) as client:
                    await until_it_answers(engine, client)
                    process = (
                        Path("/proc") / call(engine.command, "inspect", "--format", "{{.State.Pid}}", CONTAINER).strip()
                    )
                    held = next(
                        line for line in (process / "status").read_text().splitlines() if line.startswith("VmRSS")
                    )
                    say(f"ACCESS_LOG={access_log}: starts with {int(held.split()[1]) / 1024:.0f} MiB")
                    question = f"{url}/v1/allowed?url={origin.url}/private/page&agent=ExampleBot/1.0"
                    await client.get(question)
                    for _ in range(3):
                        spent, given, begun = processor(process), await decisions(client), time.monotonic()
                        await asyncio.to_thread(call, "wrk", "-t1", "-c16", "-d8s", "-s", QUESTIONS, question)
                        spent, given = processor(process) - spent, await decisions(client) - given
                        seconds = time.monotonic() - begun
                        say(
                            f"  {spent / given * 1e6:.0f} us of processor time for a decision; "
                            f"{given / seconds:.0f} a second at {spent / seconds:.0%} of a core"
                        )


def processor(process: Path) -> float:
    """CPU seconds of a process, threads included."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def decisions(client: httpx.AsyncClient) -> float:
    """The number of decisions, from /metrics."""
    lines = (await client.get("/metrics")).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("robots_decisions_total{"))


@contextmanager
def running(engine: Engine, store: str, **more: str) -> Iterator[str]:
    port = free_port()
    settings = {
        "PORT": port,
        "REDIS_URL": store,
        "ALLOW_UNAUTHENTICATED": "1",
        "ALLOW_ADDRESSES": "127.0.0.0/8",
        "ALLOW_PORTS": "*",
        **more,
    }
    variables = [part for name, value in settings.items() for part in ("--env", f"{name}={value}")]
    call(engine.command, "run", "--detach", "--name", CONTAINER, *HARDENED, *engine.options, *variables, IMAGE)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        call(engine.command, "rm", "--force", CONTAINER)


@contextmanager
def valkey() -> Iterator[str]:
    port = free_port()
    command = [str(server_binary()), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def logs_of(engine: Engine) -> str:
    logs = subprocess.run([engine.command, "logs", CONTAINER], capture_output=True, text=True)
    return f"its output: {(logs.stdout + logs.stderr)[-4000:]}"


def call(*command: str) -> str:
    """The output of a command; raises CheckFailed with its output if it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        words = (done.stdout + done.stderr)[-4000:]
        raise CheckFailed(f"`{' '.join(command)}` ended with {done.returncode}: {words}")
    return done.stdout


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
