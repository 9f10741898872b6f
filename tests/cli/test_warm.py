"""`python -m app warm`: a running service fetches many origins, each once, also across an interrupt."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from app.cli.state_file import HEADER
from tests.cli.command import LOOPBACK, command, run
from tests.cli.serving import service
from tests.faults.until import until_so
from tests.origins import Gate, LoopbackOrigin, Reply, serve, text

pytestmark = pytest.mark.usefixtures("store_client")


@asynccontextmanager
async def origins(count: int, reply: Reply) -> AsyncIterator[list[LoopbackOrigin]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(serve(reply)) for _ in range(count)]


async def test_every_origin_is_fetched_once(store_url: str) -> None:
    async with origins(5, text(200, "User-agent: *\n")) as served, service(store_url) as url:
        lines = "".join(f"{origin.url}/page\n{origin.url}\n" for origin in served)
        ended = await run("warm", "-", "--server", url, given=f"# all of them\n\n{lines}".encode())
        again = await run("warm", "-", "--server", url, given=lines.encode())
    assert (ended.code, ended.err) == (0, "5 origins fetched: 5 successful\n")
    assert again.code == 0
    assert [len(origin.requests) for origin in served] == [1] * 5


async def test_state_skips_done_origins_and_bad_lines_are_named(store_url: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with origins(3, text(404)) as served, service(store_url) as url:
        one, two, three = (origin.url for origin in served)
        state.write_bytes(HEADER + f"{one}\n{two[:-1]}".encode())  # the last line is incomplete
        given = f"{one}\n{two}\nnonsense\n{three}\n{'x' * 40_000}\n".encode()
        ended = await run("warm", "-", "--server", url, "--state", str(state), given=given)
    assert ended.code == 1
    assert "line 3: 'nonsense' is not an absolute URL" in ended.err
    assert ended.err.endswith("2 origins fetched: 2 unavailable, 1 done before, 2 unreadable lines\n")
    assert [len(origin.requests) for origin in served] == [0, 1, 1]
    head, *done = state.read_bytes().splitlines(keepends=True)
    assert head == HEADER
    assert sorted(done) == sorted(f"{it}\n".encode() for it in (one, two, three))


async def test_interrupted_command_resumes_without_loss(store_url: str, tmp_path: Path) -> None:
    state, listed = tmp_path / "state", tmp_path / "list"
    gate = Gate(text(200))
    # No fetch times out during the test: the slow origin answers only after the interrupt.
    patient = service(store_url, FETCH_TIMEOUT="100")
    async with origins(3, text(200)) as served, serve(gate) as slow, patient as url:
        listed.write_text("".join(f"{origin.url}/\n" for origin in (*served, slow)))
        arguments = ("warm", str(listed), "--server", url, "--state", str(state), "--concurrency", "2")
        async with command(*arguments) as warming:
            await asyncio.gather(*(origin.wait_for_requests(1) for origin in (*served, slow)))
            await until_so(lambda: state.read_bytes().count(b"\n") == 4)  # the header and three origins
            warming.interrupt()
            ended = await warming.ended()
        assert ended.code == 130
        assert ended.err.startswith("3 origins fetched: 3 successful\n")
        assert str(state) in ended.err
        gate.open.set()
        again = await run(*arguments)
    assert again.err == "1 origins fetched: 1 successful, 3 done before\n"
    assert again.code == 0
    assert [len(origin.requests) for origin in served] == [1, 1, 1]


async def test_file_that_is_not_a_state_is_not_modified(tmp_path: Path) -> None:
    listed = tmp_path / "list"
    listed.write_text("http://h/\n")
    ended = await run("warm", str(listed), "--state", str(listed))
    assert ended.code == 3
    assert "is not a state file of this command" in ended.err
    assert listed.read_text() == "http://h/\n"


async def test_retry_after_of_a_busy_service_is_respected() -> None:
    busy = text(503, "{}", {"Retry-After": "1", "Content-Type": "application/problem+json"})
    answer = text(200, '{"robots": {"outcome": "successful"}}', {"Content-Type": "application/json"})
    async with serve(busy, answer) as server:
        ended = await run("warm", "-", "--server", server.url, given=b"http://h/")
    assert (ended.code, len(server.requests)) == (0, 2)
    assert server.requests[0].startswith(b"GET /v1/robots?url=http%3A%2F%2Fh&as=facts&wait=")


async def test_rejected_key_ends_the_command_with_the_reason() -> None:
    refusal = text(401, '{"detail": "Unknown API key."}', {"Content-Type": "application/problem+json"})
    async with serve(refusal) as server:
        settings = {**LOOPBACK, "ROBOTS_API_KEY": "abc"}
        ended = await run("warm", "-", "--server", server.url, given=b"http://h/\nhttp://i/\n", settings=settings)
    assert ended.code == 3
    assert "Unknown API key." in ended.err
    assert b"\r\nAuthorization: Bearer abc\r\n" in server.requests[0]


@pytest.mark.parametrize(
    "arguments",
    [(), ("/nowhere",), ("-", "--concurrency", "0"), ("-", "--concurrency", "many"), ("-", "--server", "nowhere")],
)
async def test_bad_arguments_exit_with_3_and_an_error(arguments: tuple[str, ...]) -> None:
    ended = await run("warm", *arguments, given=b"")
    assert ended.code == 3
    assert ended.err
    assert "Traceback" not in ended.err
