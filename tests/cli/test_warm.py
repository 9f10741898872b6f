"""`python -m app warm`: many origins fetched by a running service, once each, also after an interrupt."""

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


async def test_every_origin_is_fetched_once_and_is_then_held(store_url: str) -> None:
    async with origins(5, text(200, "User-agent: *\n")) as served, service(store_url) as url:
        lines = "".join(f"{origin.url}/page\n{origin.url}\n" for origin in served)
        ended = await run("warm", "-", "--server", url, given=f"# all of them\n\n{lines}".encode())
        again = await run("warm", "-", "--server", url, given=lines.encode())
    assert (ended.code, ended.err) == (0, "5 origins asked: 5 successful\n")
    assert again.code == 0
    assert [len(origin.requests) for origin in served] == [1] * 5


async def test_what_is_done_is_not_asked_again_and_lines_that_are_no_urls_are_named(
    store_url: str, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    async with origins(3, text(404)) as served, service(store_url) as url:
        one, two, three = (origin.url for origin in served)
        state.write_bytes(HEADER + f"{one}\n{two[:-1]}".encode())  # the last line was cut short
        given = f"{one}\n{two}\nnonsense\n{three}\n{'x' * 40_000}\n".encode()
        ended = await run("warm", "-", "--server", url, "--state", str(state), given=given)
    assert ended.code == 1
    assert "line 3: 'nonsense' is not an absolute URL" in ended.err
    assert ended.err.endswith("2 origins asked: 2 unavailable, 1 done before, 2 lines not read\n")
    assert [len(origin.requests) for origin in served] == [0, 1, 1]
    head, *done = state.read_bytes().splitlines(keepends=True)
    assert head == HEADER
    assert sorted(done) == sorted(f"{it}\n".encode() for it in (one, two, three))


async def test_an_interrupt_loses_nothing_and_the_same_command_goes_on(store_url: str, tmp_path: Path) -> None:
    state, listed = tmp_path / "state", tmp_path / "list"
    gate = Gate(text(200))
    # No fetch is given up while the test runs: the slow origin answers when the command has been interrupted.
    patient = service(store_url, FETCH_TIMEOUT="100")
    async with origins(3, text(200)) as served, serve(gate) as slow, patient as url:
        listed.write_text("".join(f"{origin.url}/\n" for origin in (*served, slow)))
        arguments = ("warm", str(listed), "--server", url, "--state", str(state), "--concurrency", "2")
        async with command(*arguments) as warming:
            await asyncio.gather(*(origin.asked(1) for origin in (*served, slow)))
            await until_so(lambda: state.read_bytes().count(b"\n") == 4)  # the header, and those that were answered
            warming.interrupt()
            ended = await warming.ended()
        assert ended.code == 130
        assert ended.err.startswith("3 origins asked: 3 successful\n")
        assert str(state) in ended.err
        gate.open.set()
        again = await run(*arguments)
    assert again.err == "1 origins asked: 1 successful, 3 done before\n"
    assert again.code == 0
    assert [len(origin.requests) for origin in served] == [1, 1, 1]


async def test_a_file_that_is_no_state_is_left_as_it_is(tmp_path: Path) -> None:
    listed = tmp_path / "list"
    listed.write_text("http://h/\n")
    ended = await run("warm", str(listed), "--state", str(listed))
    assert ended.code == 3
    assert "is no state of this command" in ended.err
    assert listed.read_text() == "http://h/\n"


async def test_a_service_that_is_busy_is_left_alone_for_as_long_as_it_says() -> None:
    busy = text(503, "{}", {"Retry-After": "1", "Content-Type": "application/problem+json"})
    answer = text(200, '{"robots": {"outcome": "successful"}}', {"Content-Type": "application/json"})
    async with serve(busy, answer) as server:
        ended = await run("warm", "-", "--server", server.url, given=b"http://h/")
    assert (ended.code, len(server.requests)) == (0, 2)
    assert server.requests[0].startswith(b"GET /v1/robots?url=http%3A%2F%2Fh&as=facts&wait=")


async def test_a_service_that_refuses_the_key_ends_it_and_says_why() -> None:
    refusal = text(401, '{"detail": "There is no such key."}', {"Content-Type": "application/problem+json"})
    async with serve(refusal) as server:
        settings = {**LOOPBACK, "ROBOTS_API_KEY": "abc"}
        ended = await run("warm", "-", "--server", server.url, given=b"http://h/\nhttp://i/\n", settings=settings)
    assert ended.code == 3
    assert "There is no such key." in ended.err
    assert b"\r\nAuthorization: Bearer abc\r\n" in server.requests[0]


@pytest.mark.parametrize(
    "arguments",
    [(), ("/nowhere",), ("-", "--concurrency", "0"), ("-", "--concurrency", "many"), ("-", "--server", "nowhere")],
)
async def test_what_cannot_be_begun_ends_with_3_and_says_why(arguments: tuple[str, ...]) -> None:
    ended = await run("warm", *arguments, given=b"")
    assert ended.code == 3
    assert ended.err
    assert "Traceback" not in ended.err
