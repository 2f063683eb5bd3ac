"""What the tests of the page share: a tiny run with a random model, and the server, in this process or as a command."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import aiohttp
from aiohttp.test_utils import TestClient, TestServer

from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.web.limits import Limits
from alphago_zero.web.server import Page

ROOT = Path(__file__).parent.parent
# f32: in bf16 a position is not quite the same in batches of different sizes.
CONFIG = load_config(
    None,
    ["game.board_size=5", "network.filters=8", "network.blocks=1", "search.readouts=16", "inference.precision=f32"],
)
GAME = "(;GM[1]FF[4]SZ[5]KM[7.5]PB[Ada]PW[Bob]RE[W+3.5];B[cc];W[cd]C[close];B[dc];W[bc];B[];W[])"


@functools.cache
def model_folder() -> Path:
    """A folder with one model of random weights on 5x5; made once in a process."""
    from alphago_zero.network import initialize_random_model

    folder = Path(tempfile.mkdtemp(prefix="page-model-"))
    initialize_random_model(RunPaths(folder), CONFIG)
    return folder / "models"


def make_run(folder: Path) -> RunPaths:
    """A run directory with that model and two games."""
    paths = RunPaths(folder)
    shutil.copytree(model_folder(), paths.models)
    name = paths.best.read_text(encoding="utf-8").strip()
    for number in (0, 1):
        path = paths.sgf_clean(name) / f"{number:08d}.sgf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GAME, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(CONFIG.to_dict()), encoding="utf-8")
    return paths


@contextlib.asynccontextmanager
async def serving(paths: RunPaths, limits: Limits = Limits(), token: str | None = None, model: str | None = None):
    """The page in this process; yields a client."""
    page = Page(paths, CONFIG, model, limits)
    async with TestClient(TestServer(page.application(token))) as client:
        client.page = page
        yield client


class Board:
    """The page's end of a WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse):
        self.socket = socket
        self.seen: list = []

    async def send(self, **message) -> None:
        await self.socket.send_json(message)

    async def wait_for(self, kind: str, accept=lambda message: True, timeout: float = 300) -> dict:
        """The next message of a kind that is acceptable; an error message is a failure, unless asked for.

        The patience is for kernels that are compiled at their first use.
        """

        async def search() -> dict:
            while True:
                message = await self.socket.receive_json()
                self.seen.append(message)
                if message["type"] == kind and accept(message):
                    return message
                assert message["type"] != "error", message

        return await asyncio.wait_for(search(), timeout)


@contextlib.asynccontextmanager
async def board(client, path: str = "/ws/play", **new):
    async with client.ws_connect(path) as socket:
        opened = Board(socket)
        if new:
            await opened.send(type="new", **new)
        yield opened


@contextlib.contextmanager
def server_process(folder: Path, *arguments: str):
    """`controller.py serve` as a user starts it; yields (URL, process). A traceback in its log is a failure."""
    options = ["--run-dir", str(folder), "--port", "0", *arguments]
    command = [sys.executable, str(ROOT / "controller.py"), "serve", *options]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder)
        try:
            url = process.stdout.readline().strip()
            yield url, process
        finally:
            process.terminate()
            process.wait(timeout=240)
            process.stdout.close()
            log.seek(0)
            told = log.read()
        assert "Traceback" not in told, told[:3000]
