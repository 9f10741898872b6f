"""The password and the certificates of the store change in their files; new connections of every engine use them."""

import shutil
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.store import url as redis_url
from app.store.connect import connect_to, subscriber
from app.store.failures import FAILURES
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.password_file import PASSWORD_LIMIT, load_password
from tests.engines import (
    MASTER,
    SENTINEL_QUOTED,
    Certificates,
    Fleet,
    Node,
    alone,
    behind_tls,
    clustered,
    free_port,
    node,
    watched,
)
from tests.faults.until import until

OLD, NEW = "old p@ss:wörd/?", "new #1"
URLS = {
    "redis": "redis://robots@{}",
    "unix": "unix://robots@{}",
    "redis+sentinel": f"redis+sentinel://robots@{{}}/{MASTER}?sentinel_password={SENTINEL_QUOTED}",
    "redis+cluster": "redis+cluster://robots@{}",
}
SECURED = {
    "rediss": "rediss://robots@{}?{}",
    "rediss+sentinel": f"rediss+sentinel://robots@{{}}/{MASTER}?sentinel_password={SENTINEL_QUOTED}&{{}}",
    "rediss+cluster": "rediss+cluster://robots@{}?{}",
}


def everywhere(fleet: Fleet, *command: str) -> None:
    for master in fleet.masters:
        master.ask(*command)


@contextmanager
def servers(engine: str, directory: Path) -> Iterator[Fleet]:
    """Servers with a user `robots`, whose password is OLD."""
    with ExitStack() as stack:
        match engine:
            case "redis":
                fleet = stack.enter_context(alone())
            case "unix":
                path = directory / "store"
                fleet = Fleet(str(path), [stack.enter_context(node(unixsocket=str(path)))])
            case "redis+sentinel":
                fleet = stack.enter_context(watched(1, 0))
            case _:
                fleet = stack.enter_context(clustered(0))
        everywhere(fleet, "ACL", "SETUSER", "robots", "on", f">{OLD}", "~*", "&*", "+@all")
        yield fleet


@contextmanager
def secured(engine: str, certificates: Certificates) -> Iterator[Fleet]:
    """Servers behind TLS, with the user `robots`."""
    with ExitStack() as stack:

        def front(target: Node, port: int = 0) -> int:
            port = port or free_port()
            stack.enter_context(behind_tls(certificates, port, target.port))
            return port

        match engine:
            case "rediss":
                masters = stack.enter_context(alone()).masters
                hosts = f"127.0.0.1:{front(masters[0])}"
            case "rediss+sentinel":
                fleet = stack.enter_context(watched(1, 0, front=front))
                masters, hosts = fleet.masters, f"127.0.0.1:{front(fleet.sentinels[0])}"
            case _:
                ports = [free_port() for _ in range(3)]
                fleet = stack.enter_context(clustered(0, announced=ports))
                masters, hosts = fleet.masters, fleet.hosts
                for master, port in zip(masters, ports, strict=True):
                    front(master, port)
        fleet = Fleet(hosts, masters)
        everywhere(fleet, "ACL", "SETUSER", "robots", "on", f">{OLD}", "~*", "&*", "+@all")
        yield fleet


@dataclass(frozen=True)
class Connected:
    """A client of servers, whose password is that in `file`."""

    fleet: Fleet
    redis: GuardedClient
    file: Path

    async def works(self) -> bool:
        """Whether every server answers, also on a connection that is opened now."""
        try:
            for key in (f"{{{number}}}" for number in range(15)):
                assert await self.redis.command(key, "GETRANGE", key, 0, 1) == b""
            async with aclosing(await subscriber(self.redis.client)) as listener:
                await listener.subscribe("test:news")
        except (StoreDown, *FAILURES):
            return False
        return True

    async def fails(self) -> bool:
        return not await self.works()

    def disconnect(self) -> None:
        """Let the servers close the connections of the user."""
        everywhere(self.fleet, "CLIENT", "KILL", "USER", "robots")

    def refusals(self) -> int:
        """How many times the servers refused a password."""
        return sum(entry["reason"] == "auth" for master in self.fleet.masters for entry in master.ask("ACL LOG"))


@asynccontextmanager
async def connected(url: str, fleet: Fleet, directory: Path) -> AsyncIterator[Connected]:
    file = directory / "password"
    file.write_text(f"{OLD}\n")
    file.chmod(0o600)
    everywhere(fleet, "ACL", "LOG", "RESET")
    client = connect_to(redis_url.read(url, file))
    redis = GuardedClient(client, monotonic=time.monotonic, timeout=20.0)
    try:
        one = Connected(fleet, redis, file)
        await until(one.works, bool)
        yield one
    finally:
        await redis.aclose()
        await client.aclose()


@pytest.mark.parametrize("engine", URLS)
async def test_a_password_is_rotated_without_a_refusal(engine: str, tmp_path: Path) -> None:
    with servers(engine, tmp_path) as fleet:
        async with connected(URLS[engine].format(fleet.hosts), fleet, tmp_path) as one:
            everywhere(fleet, "ACL", "SETUSER", "robots", f">{NEW}")
            one.file.write_text(NEW)
            assert await one.works()
            everywhere(fleet, "ACL", "SETUSER", "robots", f"<{OLD}")
            assert await one.works()  # connections stay authenticated
            one.disconnect()
            await until(one.works, bool)
            assert one.refusals() == 0


@pytest.mark.parametrize("engine", URLS)
async def test_a_refused_password_is_replaced_by_the_one_that_the_file_gets(engine: str, tmp_path: Path) -> None:
    with servers(engine, tmp_path) as fleet:
        async with connected(URLS[engine].format(fleet.hosts), fleet, tmp_path) as one:
            everywhere(fleet, "ACL", "SETUSER", "robots", f">{NEW}", f"<{OLD}")
            one.disconnect()

            async def refused() -> bool:
                return not await one.works() and one.refusals() > 0

            await until(refused, bool)
            one.file.write_text(NEW)
            await until(one.works, bool)


@pytest.mark.parametrize("content", [None, b"", b"\n", b"two\nlines\n", b"\xff", b"x" * (PASSWORD_LIMIT + 1)])
async def test_the_last_password_is_used_while_the_file_has_none(
    content: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with servers("redis", tmp_path) as fleet:
        async with connected(URLS["redis"].format(fleet.hosts), fleet, tmp_path) as one:
            one.file.unlink()
            if content is not None:
                one.file.write_bytes(content)
                one.file.chmod(0o600)
            for _ in range(3):
                one.disconnect()
                await until(one.works, bool)
            assert one.refusals() == 0
    [line] = [record.getMessage() for record in caplog.records if "reload" in record.getMessage()]
    assert line.startswith(f"cannot reload REDIS_PASSWORD_FILE={one.file}, so the previous content stays in force: it ")
    assert OLD not in line


@pytest.mark.parametrize("written", ["secret word ", "secret word \n", "secret word \r\n"])
def test_one_line_break_at_the_end_is_ignored(written: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(written, newline="")
    file.chmod(0o600)
    assert load_password(file) == "secret word "


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o601, 0o644, 0o620, 0o666, 0o444])
def test_a_file_that_others_may_read_or_change_is_refused(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("the-one-secret")
    file.chmod(mode)
    with pytest.raises(ValueError, match=f"its mode is {mode:04o}, so other users may") as caught:
        load_password(file)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600, 0o640])
def test_a_file_of_its_owner_and_group_is_read(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("the-one-secret")
    file.chmod(mode)  # 0440 is the mode of a mounted Secret, whose group is fsGroup
    assert load_password(file) == "the-one-secret"


@pytest.mark.parametrize("url", ["redis://:{}@host", "redis+sentinel://user:{}@host/main", "redis+cluster://:{}@host"])
def test_a_password_in_the_url_and_in_a_file_is_refused(url: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("the-one-secret")
    file.chmod(0o600)
    with pytest.raises(ValueError, match=r"REDIS_URL has a password, and REDIS_PASSWORD_FILE=.* remove one") as caught:
        redis_url.read(url.format("other-secret"), file)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("engine", SECURED)
async def test_certificates_are_rotated_on_both_sides(engine: str, tmp_path: Path) -> None:
    for name in ("mounted", "old", "new"):
        (tmp_path / name).mkdir()
    mounted, old, new = tmp_path / "mounted", Certificates(tmp_path / "old"), Certificates(tmp_path / "new")
    query = f"ssl_ca_certs={mounted}/authority.pem&ssl_certfile={mounted}/client.pem"

    def mount(certificates: Certificates) -> None:
        shutil.copy(certificates.authority, mounted)
        shutil.copy(certificates.client, mounted)

    mount(old)
    with secured(engine, old) as fleet:
        async with connected(SECURED[engine].format(fleet.hosts, query), fleet, tmp_path) as one:
            before, old.server = old.server, new.server
            assert await one.redis.command("{0}", "GETRANGE", "{0}", 0, 1) == b""  # by an open connection
            one.disconnect()
            await until(one.fails, bool)
            mount(new)
            await until(one.works, bool)
            # The old authority is no longer trusted.
            old.server = before
            one.disconnect()
            await until(one.fails, bool)


async def test_a_certificate_without_its_key_changes_nothing(tmp_path: Path) -> None:
    def pair(certificates: Certificates) -> tuple[str, str]:
        text = certificates.client.read_text()
        start = text.index("-----BEGIN CERTIFICATE")
        return text[start:], text[:start]

    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    (old_certificate, old_key), (new_certificate, new_key) = (
        pair(Certificates(tmp_path / name)) for name in ("old", "new")
    )
    certificate.write_text(old_certificate)
    key.write_text(old_key)
    files = redis_url.read(f"rediss://host?ssl_certfile={certificate}&ssl_keyfile={key}").tls
    assert files is not None
    before: ssl.SSLContext = files.value
    certificate.write_text(new_certificate)
    assert await files.current() is before
    key.write_text(new_key)
    assert await files.current() is not before
