"""`make image-check`: build the image, run it as a cluster would, and ask it for a decision.

With a Docker engine, that is what is used. Without one, and as root: buildah and podman, on a base that debootstrap
makes; what they store is in build/image. Either way the container has a root file system that cannot be written to, no
capabilities, the engine's own filter of system calls, and the network of this machine, since the origin that it asks is
on loopback.
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
from app.redis.embedded import server_binary
from tests.origins import serve, text

ROOT = Path(__file__).parent.parent.parent
STORAGE = ROOT / "build" / "image"
IMAGE = "robots-decisions:check"
CONTAINER = f"robots-image-check-{os.getpid()}"
HYBRID = Path("/sys/fs/cgroup/unified")
START = 60.0
"""Seconds within which a container has to answer."""

STOP = 20
"""Seconds that it has for its end, once it is told to."""

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
COMPILED = """
import importlib, pathlib, sys
files = [path for path in pathlib.Path("/srv/app/robots/_native").iterdir() if path.is_file()]
modules = {path.name.split(".")[0] for path in files if path.suffix == ".so"}
for module in modules:
    importlib.import_module(f"app.robots._native.{module}")
sys.exit(not modules or any(path.suffix not in (".py", ".so") for path in files))
"""


class CheckFailed(RuntimeError):
    """The image is not what it has to be, or could not be built; the text says in what."""


@dataclass(frozen=True, slots=True)
class Docker:
    """Docker's engine, and a base that it can have."""

    command: str = "docker"
    options: Sequence[str] = ()

    def build(self, base: str | None, arguments: Sequence[str]) -> None:
        on = () if base is None else ("--build-arg", f"BASE={base}")
        call("docker", "build", "--quiet", *on, *arguments, "-t", IMAGE, ".")


@dataclass(frozen=True, slots=True)
class Podman:
    """buildah and podman, and unless there is a base to be had, one that is made here."""

    command: str = "podman"
    # podman mounts more places to write to of its own accord, wants systemd as a clock for HEALTHCHECK, and a control
    # group that it may write to: none of that is about the image.
    options: Sequence[str] = ("--read-only-tmpfs=false", "--no-healthcheck", "--cgroups=disabled")

    def build(self, base: str | None, arguments: Sequence[str]) -> None:
        if base is None:
            base = "localhost/robots-base"
            if subprocess.run(["buildah", "inspect", base], capture_output=True).returncode != 0:
                say("making a base image with debootstrap")
                call("sh", "deploy/image/base.sh", base)
        # The OCI format has no place for HEALTHCHECK.
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
"""What builds an image, and the command that runs it, which takes the words of Docker's."""


def main() -> int:
    """Say what was built and asked; 1 and a sentence if it is not as it should be."""
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
        say(f"the image is not as it should be: {error}")
        return 1
    return 0


def chosen() -> Engine:
    """The engine that can be had here."""
    if shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True).returncode == 0:
        return Docker()
    if os.geteuid() != 0:
        raise CheckFailed("there is no Docker engine, and to build without one takes root.")
    if os.path.ismount(HYBRID) and not os.environ.get("ROBOTS_IMAGE_CHECK_ALONE"):
        # crun does not run where both versions of control groups are mounted. In a mount namespace of our own, one is.
        alone = ("unshare", "--mount", "sh", "-c", f'umount {HYBRID} && exec "$@"', "sh")
        again = [*alone, sys.executable, "-m", "tests.deploy.image", *sys.argv[1:]]
        os.execvpe("unshare", again, {**os.environ, "ROBOTS_IMAGE_CHECK_ALONE": "1"})
    if not all(map(shutil.which, TOOLS)):
        say(f"installing {', '.join(TOOLS)}")
        call("apt-get", "update", "-qq")
        install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
        call("env", "DEBIAN_FRONTEND=noninteractive", *install, *TOOLS)
    STORAGE.mkdir(parents=True, exist_ok=True)
    # A short path, since sockets are in it, and the same at every run, since podman keeps to the first it was told.
    run = f"/run/robots-image-{crc32(bytes(ROOT))}"
    configuration = STORAGE / "storage.conf"
    configuration.write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{STORAGE}/storage"\nrunroot = "{run}"\n')
    os.environ["CONTAINERS_STORAGE_CONF"] = str(configuration)
    return Podman()


def build(engine: Engine, base: str | None) -> None:
    """Build IMAGE, with its labels; say how large it is."""
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
    """Run IMAGE on this machine's loopback, with a Valkey and an origin beside it, and ask it."""
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
                if (await client.get("/")).status_code != 200:
                    raise CheckFailed("the page to try it on is not there.")
            say("it answers /healthz, /readyz, / and a decision")
            await asyncio.to_thread(look_inside, engine)
            await asyncio.to_thread(end, engine)


def refuses_to_be_open(engine: Engine) -> None:
    """Without keys, and unless it is told to, it does not listen to all."""
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
        raise CheckFailed(f"without keys it ended with {done.returncode} and said {done.stderr[-1000:]!r}.")
    say("it does not listen to all without keys, and says what to set")


async def until_it_answers(engine: Engine, client: httpx.AsyncClient) -> None:
    """Come back once /healthz is answered."""
    deadline = time.monotonic() + START
    while True:
        try:
            if (await client.get("/healthz")).json() == {"status": "ok"}:
                return
        except httpx.TransportError:
            if call(engine.command, "inspect", "--format", "{{.State.Running}}", CONTAINER).strip() != "true":
                raise CheckFailed(f"it has ended; {said(engine)}") from None
            if time.monotonic() > deadline:
                raise CheckFailed(f"it does not answer within {START:.0f} s; {said(engine)}") from None
        await asyncio.sleep(0.1)


def look_inside(engine: Engine) -> None:
    """What a container can do besides answering is nothing."""

    def inside(*command: str) -> int:
        return subprocess.run([engine.command, "exec", CONTAINER, *command], capture_output=True).returncode

    if inside("/usr/bin/python3", "/srv/health.py") != 0:
        raise CheckFailed("the command of HEALTHCHECK fails.")
    if inside("/usr/bin/python3", "-c", WRITE) == 0:
        raise CheckFailed("its root file system can be written to.")
    if inside("/usr/bin/python3", "-c", COMPILED) != 0:
        raise CheckFailed("the core's compiled modules are not there, do not load, or have their sources beside them.")
    for shell in ("/bin/sh", "/bin/bash", "/bin/dash", "/usr/bin/sh"):
        if inside(shell, "-c", ":") == 0:
            raise CheckFailed(f"there is a shell in it, {shell}.")
    say("HEALTHCHECK passes; nothing can be written; the core is compiled; there is no shell")


def end(engine: Engine) -> None:
    """A container that is told to end does so, before it is killed."""
    begun = time.monotonic()
    call(engine.command, "stop", "-t", str(STOP), CONTAINER)
    seconds = time.monotonic() - begun
    code = int(call(engine.command, "inspect", "--format", "{{.State.ExitCode}}", CONTAINER))
    if code == 137:
        raise CheckFailed(f"it had to be killed after {seconds:.0f} s.")
    say(f"told to end, it does so in {seconds:.1f} s, with exit code {code}")


async def measure(engine: Engine) -> None:
    """Say what IMAGE takes when it starts, and for a decision from memory about one page after the other."""
    if shutil.which("wrk") is None:
        raise CheckFailed("there is no wrk to measure with: install it.")
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
    """Seconds that a process has computed, threads included."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def decisions(client: httpx.AsyncClient) -> float:
    """How many decisions were given, by /metrics."""
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


def said(engine: Engine) -> str:
    logs = subprocess.run([engine.command, "logs", CONTAINER], capture_output=True, text=True)
    return f"it said: {(logs.stdout + logs.stderr)[-4000:]}"


def call(*command: str) -> str:
    """What the command prints; CheckFailed with what it said if it fails."""
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
