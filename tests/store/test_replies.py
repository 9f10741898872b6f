"""Replies of a server are read the same however they are cut, and nothing but InvalidResponse is raised."""

import asyncio
import random
from typing import Any

import pytest
from redis.asyncio.client import PubSub
from redis.exceptions import InvalidResponse, NoScriptError, ReadOnlyError, ResponseError

from app.store.connect import connect, subscriber
from app.store.replies import ARRAY_LIMIT, REPLY_LINE_LIMIT, STORE_REPLY_LIMIT, Replies

PARTS = (b"\r\n", b"*", b"$", b":", b"-", b"+", b"1", b"-1", b"9", b"MOVED ", b"\x00")

RECEIVED: list[tuple[bytes, Any]] = [
    (b":-12\r\n", -12),
    (b"+OK\r\n", b"OK"),
    (b"$-1\r\n", None),
    (b"*-1\r\n", None),
    (b"*0\r\n", []),
    (b"$0\r\n\r\n", b""),
    (b"$4\r\n\r\n:1\r\n", b"\r\n:1"),
    (b"$70000\r\n" + b"\n" * 70_000 + b"\r\n", b"\n" * 70_000),
    (b"*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n$-1\r\n", [1, [b"a", []], None]),
    (b"*2\r\n*1\r\n*1\r\n*1\r\n:7\r\n:8\r\n", [[[[7]]], 8]),
    (b"*300\r\n" + b"$3\r\nabc\r\n" * 300, [b"abc"] * 300),
]


@pytest.mark.parametrize("seed", range(20))
def test_replies_are_the_same_however_they_are_cut(seed: int) -> None:
    chance = random.Random(seed)
    chosen = chance.choices(RECEIVED, k=40)
    data, replies, found, at = b"".join(row[0] for row in chosen), Replies(), [], 0
    while at < len(data):
        size = chance.choice((1, 2, 3, 7, 100, 5_000, 65_536))
        found += replies.feed(data[at : at + size])
        at += size
    assert found == [row[1] for row in chosen]


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        (b"-NOSCRIPT No matching script.", NoScriptError, "No matching script."),
        (b"-READONLY You can't write.", ReadOnlyError, "You can't write."),
        (b"-WRONGTYPE of \xff", ResponseError, "WRONGTYPE of \ufffd"),
    ],
)
def test_an_error_is_a_value(line: bytes, kind: type[Exception], text: str) -> None:
    [error, within] = Replies().feed(line + b"\r\n*1\r\n" + line + b"\r\n")
    assert type(error) is type(within[0]) is kind
    assert str(error) == text


MANY = b"*%d\r\n" % (ARRAY_LIMIT + 1)
TOO_LARGE = {
    "an array": MANY,
    "an array within others": b"*2\r\n:1\r\n*1\r\n" + MANY,
    "an array after a string": b"*2\r\n$8\r\n" + MANY[:8] + b"\r\n" + MANY,
    "an array after a reply": b"+OK\r\n*-1\r\n" + MANY,
    "an error": b"-ERR " + b"y" * REPLY_LINE_LIMIT + b"\r\n",
    "a line without an end": b"+" + b"A" * (REPLY_LINE_LIMIT + 1),
    "a string": b"$4000000000\r\n" + b"A" * (STORE_REPLY_LIMIT + 1_000_000),
    "many short strings": b"*%d\r\n" % ARRAY_LIMIT
    + (b"$999\r\n" + b"A" * 999 + b"\r\n") * (STORE_REPLY_LIMIT // 1000 + 1000),
}


@pytest.mark.parametrize("size", [1, 5, 4096, 65_536], ids=str)
@pytest.mark.parametrize("sent", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_is_refused_however_it_is_cut(sent: bytes, size: int) -> None:
    size = max(size, len(sent) // 1000)
    with pytest.raises(InvalidResponse, match=r"more than \d+ (bytes|items)"):
        _feed(Replies(), sent, size)


def _feed(replies: Replies, sent: bytes, size: int) -> None:
    for at in range(0, len(sent), size):
        replies.feed(sent[at : at + size])


@pytest.mark.parametrize("seed", range(20))
def test_strings_may_look_like_arrays(seed: int) -> None:
    chance = random.Random(seed)
    texts = [b"".join(chance.choices((MANY, b"\r\n", b"$9999999\r\n", b"x" * 50), k=30)) for _ in range(50)]
    data = b"*50\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts) + b"+OK\r\n"
    replies, found, at = Replies(), [], 0
    while at < len(data):
        size = chance.choice((1, 2, 3, 7, 100, 5_000))
        found += replies.feed(data[at : at + size])
        at += size
    assert found == [texts, b"OK"]


GARBAGE = (
    b"HTTP/1.1 400 Bad Request\r\n",
    b":x\r\n",
    b":\r\n",
    b":" + b"9" * 5000 + b"\r\n",
    b"$x\r\n",
    b"*x\r\n",
    b"-MOVED\r\n",
    b"-ASK 1 2 3\r\n",
    b"\r\n",
    b"\xff\r\n",
    b"*2\r\n:1\r\n?\r\n",
    b"x" * 100,
    b"*4294967295\r\n",
)


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_raises_one_error(garbage: bytes) -> None:
    with pytest.raises(InvalidResponse):
        Replies().feed(garbage)


@pytest.mark.parametrize("seed", range(50))
def test_random_bytes_raise_one_error(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        replies = Replies()
        data = b"".join(
            chance.choices((b"\r\n", b"*", b"$", b":", b"-", b"+", b"1", b"-1", b"9", b"MOVED ", b"\x00"), k=30)
        )
        try:
            for at in range(0, len(data), 5):
                replies.feed(data[at : at + 5])
        except InvalidResponse:
            continue


@pytest.mark.parametrize("sent", TOO_LARGE.values(), ids=TOO_LARGE)
async def test_messages_have_the_same_bounds(sent: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(b"+OK\r\n" * data.count(b"SETINFO"))
            if b"SUBSCRIBE" in data:
                writer.write(b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" + sent)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    client = connect(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    listener = await subscriber(client)
    await listener.subscribe("a")
    with pytest.raises(InvalidResponse, match=r"more than \d+ (bytes|items)"):
        await _listen(listener)
    await listener.aclose()  # type: ignore[no-untyped-call]
    await client.aclose()
    server.close()


async def _listen(listener: PubSub) -> None:
    while True:
        await listener.get_message(timeout=20.0)
