"""The page under load and under fire: many boards at once, and messages that no page would send."""

import asyncio
import itertools
import json
import random
import subprocess
import time
from contextlib import suppress

import aiohttp
import pytest
from web_server import GAME, make_run, server_process


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with server_process(make_run(tmp_path_factory.mktemp("run")).root) as (url, process):
        yield url, process


def megabytes(process) -> float:
    """Memory that the server holds."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True, text=True, check=True)
    return int(told.stdout) / 1024


async def play_moves(session, url, readouts, moves):
    """One client: a few moves, each answered; returns the longest wait."""
    longest = 0.0
    async with session.ws_connect(f"{url}ws/play") as socket:
        await socket.send_json({"type": "new", "color": "black", "readouts": readouts})
        position = await next_turn(socket)
        for number in range(moves):
            if position["over"] or position["result"]:
                break
            legal = [k for k, letter in enumerate(position["legal"]) if letter == "1"] or [25]
            start = time.monotonic()
            await socket.send_json({"type": "play", "move": legal[number * 7 % len(legal)]})
            position = await next_turn(socket, len(position["moves"]))
            longest = max(longest, time.monotonic() - start)
    return longest


async def next_turn(socket, after=-1):
    while True:
        message = await asyncio.wait_for(socket.receive_json(), 300)
        assert message["type"] != "error", message
        if message["type"] == "position" and len(message["moves"]) > after:
            if message["persons_turn"] or message["over"] or message["result"]:
                return message


async def play_everywhere(url, clients, readouts=100, moves=3):
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        return await asyncio.gather(*(play_moves(session, url, readouts, moves) for _ in range(clients)))


def test_fifty_boards_at_once_are_all_answered_and_memory_stays_flat(server):
    url, process = server
    asyncio.run(play_everywhere(url, 50))  # everything is compiled and has its size now
    before = megabytes(process)
    for _ in range(3):
        waits = asyncio.run(play_everywhere(url, 50))
        assert len(waits) == 50
    assert megabytes(process) - before < 30
    print(f"longest wait of 50 clients {max(waits):.2f} s; {before:.0f} MB, then {megabytes(process):.0f} MB")


# --- fuzz -------------------------------------------------------------------------------------------------------------

_TYPES = "new play undo resign think score sgf look analyze stop hello judge".split()
_KEYS = "move moves color readouts komi handicap model think on game question variation type".split()
_ODD = [None, True, -1, 0, 1, 24, 25, 26, 10**30, -1.5, 1e308, "", "black", "x" * 300, "\u0000", "../..", [], [0], [[]]]
_ODD += [{}, [25] * 60, {"type": "new"}]


def odd_message(rng: random.Random) -> str:
    """JSON that is nearly right, or text that is no JSON."""
    message = {"type": rng.choice(_TYPES)}
    for key in rng.sample(_KEYS, rng.randrange(4)):
        message[key] = rng.choice(_ODD)
    text = json.dumps(message)
    kind = rng.random()
    if kind < 0.1:
        return text[: rng.randrange(len(text))]
    if kind < 0.2:
        letters = list(text)
        letters[rng.randrange(len(letters))] = chr(rng.randrange(1, 0x2FF))
        return "".join(letters)
    if kind < 0.23:
        return "[" * rng.randrange(1, 3000)
    return text


def odd_request(rng: random.Random, port: int) -> bytes:
    """A request, mostly well formed, with something odd in it."""
    methods, paths = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "BREW"], ["/", "/api/games", "/api/judge", "/static/"]
    path = rng.choice([*paths, "/ws/play", "/nowhere", "/api/games?path=", "/%", "//", "*", "/static/%2e%2e/x"])
    if rng.random() < 0.3:
        path += "".join(chr(rng.randrange(33, 127)) for _ in range(rng.randrange(20)))
    body = rng.choice([b"", GAME.encode(), b"\xff" * 50, odd_message(rng).encode(), rng.randbytes(200)])
    headers = {"Host": f"127.0.0.1:{port}", "Connection": "close", "Content-Length": str(len(body))}
    for name in rng.sample(["Origin", "Cookie", "Content-Type", "Upgrade", "Range", "Expect"], rng.randrange(3)):
        headers[name] = rng.choice(["", "x", "null", "websocket", "bytes=0-", "text/plain", "100-continue", "é"])
    lines = [f"{rng.choice(methods)} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    raw = "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body
    if rng.random() < 0.1:
        raw = bytearray(raw)
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return bytes(raw)


async def fire_request(raw: bytes, port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw)
        with suppress(OSError):
            writer.write_eof()
        try:
            answer = await asyncio.wait_for(reader.read(4096), 300)
        except asyncio.TimeoutError:
            pytest.fail(f"no answer to {raw!r}")
        assert not answer.startswith(b"HTTP/1.1 500"), (raw, answer)
        assert b"Traceback" not in answer, (raw, answer)
    except ConnectionError:
        pass  # it may hang up on nonsense
    finally:
        writer.close()


async def fire_messages(session, url, rng: random.Random, count: int) -> None:
    """On one connection; the server may close it, but says nothing of its inside."""
    with suppress(aiohttp.WSServerHandshakeError, ConnectionError):
        path = rng.choice(["play", "play", "review", "watch"])
        async with session.ws_connect(f"{url}ws/{path}") as socket:
            for _ in range(count):
                await socket.send_str(odd_message(rng))
            end = time.monotonic() + 0.2
            while not socket.closed and time.monotonic() < end:
                with suppress(asyncio.TimeoutError):
                    received = await socket.receive(timeout=0.1)
                    if received.type is aiohttp.WSMsgType.TEXT:
                        assert "went wrong" not in received.data, received.data


async def fire(url: str, messages: int, seed: int) -> None:
    port = int(url.rsplit(":", 1)[1].strip("/"))
    rng = random.Random(seed)
    async with aiohttp.ClientSession() as session:
        for _ in range(0, messages, 50):
            await asyncio.gather(
                *(fire_request(odd_request(rng, port), port) for _ in range(25)),
                fire_messages(session, url, rng, 13),
                fire_messages(session, url, rng, 12),
            )


@pytest.mark.parametrize("messages", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_server_answers_after_any_nonsense(server, messages):
    url, process = server
    asyncio.run(fire(url, messages, seed=messages))
    assert process.poll() is None

    async def ask():
        async with aiohttp.ClientSession() as session:
            assert (await session.get(f"{url}api/site")).status == 200
            assert await play_moves(session, url, readouts=8, moves=1) > 0

    asyncio.run(ask())


def test_a_request_that_never_ends_does_not_stop_others(server):
    url, _ = server
    port = int(url.rsplit(":", 1)[1].strip("/"))

    async def ask():
        writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(100)]
        for writer, part in zip(writers, itertools.cycle((b"GET / HT", b"POST /api/games HTTP/1.1\r\nHost: x"))):
            writer.write(part)
        async with aiohttp.ClientSession() as session:
            assert (await session.get(f"{url}api/site")).status == 200
        for writer in writers:
            writer.close()

    asyncio.run(ask())
