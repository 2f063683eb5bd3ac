"""The server of the page: `controller.py serve`.

    /                     the page; /static/... its files; /charts/d3.js from the package that ships it
    /api/site             models, limits, rules: what the page must know at first
    /api/games            POST an SGF file to review; GET: the newest games of the run, or one of them by its path
    /api/judge            POST a position: policy and value by a model, without search
    /ws/play              one game against a model (play.py)
    /ws/review            one game under analysis (review.py)
    /ws/watch             the state of a run, whenever it changes (watch.py)

aiohttp serves HTTP and WebSocket from one loop, in one dependency. The loop only passes messages on: searches run in
threads, whose compiled kernels and network need no interpreter lock, and all of them share one batch (networks.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging as python_logging
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Callable

from absl import logging
from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from alphago_zero import __version__
from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.errors import UserError
from alphago_zero.web.judge import Judge
from alphago_zero.web.limits import Bucket, Limits, Refusal, parse_message
from alphago_zero.web.networks import Networks
from alphago_zero.web.play import PlayBoard, handicap_points
from alphago_zero.web.review import GameShelf, ReviewBoard
from alphago_zero.web.security import Guard, is_loopback, message
from alphago_zero.web.thinker import Desk
from alphago_zero.web.watch import RunWatch

STATIC = Path(__file__).parent / "static"


class Page:
    """All that the requests share."""

    def __init__(self, paths: RunPaths, config: Config, model: str | None = None, limits: Limits = Limits()):
        self.config, self.limits = config, limits
        self.networks = Networks(paths, config, limits.models, model)
        self.pool = ThreadPoolExecutor(limits.boards + 4, thread_name_prefix="search")
        turns = (asyncio.Semaphore(limits.counts), asyncio.Semaphore(limits.analyses))
        self.desk = Desk(self.networks, config, limits, self.pool, *turns)
        self.shelf = GameShelf(paths, limits)
        self.watch = RunWatch(paths, config)
        self.judge = Judge(self.networks, limits)
        self._files = {path.name: path for path in STATIC.iterdir()}
        self._uploads = asyncio.Semaphore(limits.uploads)
        self._sockets: set = set()
        self._warming: asyncio.Task | None = None

    def application(self, token: str | None = None) -> web.Application:
        app = web.Application(middlewares=[Guard(token).middleware], client_max_size=self.limits.upload_bytes)
        app.router.add_get("/", self._index)
        app.router.add_get("/charts/d3.js", self._charts)
        app.router.add_get("/api/site", self._site)
        app.router.add_get("/api/games", self._games)
        app.router.add_post("/api/games", self._open_game)
        app.router.add_post("/api/judge", self._judge)
        app.router.add_get("/ws/play", self._play)
        app.router.add_get("/ws/review", self._review)
        app.router.add_get("/ws/watch", self._watch)
        app.router.add_get("/static/{name}", self._static)
        app.on_startup.append(self._warm_up)
        app.on_shutdown.append(self._close_sockets)
        app.on_cleanup.append(self._clean_up)
        return app

    # --- files and figures --------------------------------------------------------------------------------------------

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        path = self._files.get(request.match_info["name"])
        if path is None:
            raise web.HTTPNotFound
        return web.FileResponse(path)

    async def _charts(self, request: web.Request) -> web.StreamResponse:
        path = charts_library()
        if path is None:
            raise Refusal("The charts need the package XStatic-D3.")
        return web.FileResponse(path, headers={"Content-Type": "text/javascript"})

    async def _site(self, request: web.Request) -> web.Response:
        models = await asyncio.to_thread(self.networks.describe)
        sizes = {model["size"] for model in models} | {self.config.game.board_size}
        return web.json_response(
            {
                "version": __version__,
                "models": models,
                "default": self.networks.default(),
                "size": self.config.game.board_size,
                "komi": self.config.game.komi,
                "handicaps": {size: len(handicap_points(size)) for size in sizes},
                "upload_bytes": self.limits.upload_bytes,
                "readouts": {"default": min(400, self.limits.readouts), "most": self.limits.readouts},
            }
        )

    async def _games(self, request: web.Request) -> web.Response:
        path = request.query.get("path")
        if path is None:
            return web.json_response({"games": await asyncio.to_thread(self.shelf.newest)})
        return web.json_response(await asyncio.to_thread(self.shelf.open_file, path))

    async def _open_game(self, request: web.Request) -> web.Response:
        data = await request.read()
        async with self._uploads:
            return web.json_response(await asyncio.to_thread(self.shelf.open_bytes, data))

    async def _judge(self, request: web.Request) -> web.Response:
        if request.content_length is None or request.content_length > self.limits.message_bytes:
            raise Refusal("The question is too long.")
        question = parse_message(await request.read())
        await self._compiled()
        return web.json_response(await self.judge.answer(question))

    # --- sockets ------------------------------------------------------------------------------------------------------

    async def _play(self, request: web.Request) -> web.StreamResponse:
        return await self._converse(request, lambda send: PlayBoard(self.desk, send))

    async def _review(self, request: web.Request) -> web.StreamResponse:
        return await self._converse(request, lambda send: ReviewBoard(self.desk, send, self.shelf))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        return await self._converse(request, self.watch.watcher, searches=False)

    async def _converse(self, request: web.Request, make: Callable, searches: bool = True) -> web.StreamResponse:
        """Read messages until the page goes, says nothing for long, or says too much."""
        if len(self._sockets) >= self.limits.boards:
            return message(503, "Too many boards are open; close one, or try again later.")
        socket = web.WebSocketResponse(heartbeat=30, max_msg_size=self.limits.message_bytes)
        if not socket.can_prepare(request):
            return message(400, "This is a WebSocket.")
        self._sockets.add(socket)
        board = make(lambda answer: send(socket, answer))
        try:
            if searches:
                await self._compiled()
            await socket.prepare(request)
            await self._read(socket, board)
        except ConnectionError:
            pass  # the page has gone
        finally:
            self._sockets.discard(socket)
            await board.close()
        return socket

    async def _read(self, socket: web.WebSocketResponse, board) -> None:
        bucket = Bucket(self.limits.messages_per_second, self.limits.message_burst)
        while not socket.closed:
            try:
                received = await asyncio.wait_for(socket.receive(), self.limits.idle_seconds)
            except asyncio.TimeoutError:
                await socket.close(code=WSCloseCode.GOING_AWAY, message=b"idle")
                return
            if received.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return
            if not bucket.take():
                await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"too many messages")
                return
            try:
                await board.handle(parse_message(received.data))
            except UserError as error:
                await send(socket, {"type": "error", "message": str(error)})
            except (ConnectionError, asyncio.CancelledError):
                raise
            except Exception:
                logging.exception("a message to %s", type(board).__name__)
                await send(socket, {"type": "error", "message": "Something went wrong; the server's log says what."})

    # --- beginning and end --------------------------------------------------------------------------------------------

    async def _warm_up(self, app: web.Application) -> None:
        """Begin to load the model and to compile the kernels: in a thread with a loop of its own, since the first time
        on a computer it takes long, and the page is served meanwhile."""
        self._warming = asyncio.create_task(asyncio.to_thread(asyncio.run, self._rehearse()))

    async def _rehearse(self) -> None:
        """A move and a count that nobody sees."""
        board = PlayBoard(replace(self.desk, counts=asyncio.Semaphore()), _nobody)
        try:
            await board.handle({"type": "new", "color": "white", "readouts": 16})
            await board.thought()
            await board.handle({"type": "score"})
            await board.thought()
        except UserError as error:  # there is no model yet, or it is damaged
            logging.warning("%s", error)
        await board.close()

    async def _compiled(self) -> None:
        """Wait for the kernels: whoever needed one now would compile it in the loop, and all others would wait."""
        await asyncio.wait({self._warming})

    async def _close_sockets(self, app: web.Application) -> None:
        goodbye = {"code": WSCloseCode.GOING_AWAY, "message": b"the server is closing"}
        await asyncio.gather(*(socket.close(**goodbye) for socket in list(self._sockets)), return_exceptions=True)

    async def _clean_up(self, app: web.Application) -> None:
        await self.watch.close()
        await asyncio.to_thread(self.networks.close)  # whoever still searches is told
        await asyncio.gather(self._warming, return_exceptions=True)
        self.pool.shutdown(wait=False, cancel_futures=True)


async def send(socket: web.WebSocketResponse, answer: dict) -> None:
    """Raises ConnectionError if the page has gone."""
    if socket.closed:
        raise ConnectionResetError("closed")
    await socket.send_json(answer)


async def _nobody(answer: dict) -> None:
    pass


def charts_library() -> Path | None:
    """The file of D3 in the package XStatic-D3."""
    with contextlib.suppress(ModuleNotFoundError):
        spec = importlib.util.find_spec("xstatic.pkg.d3")
        if spec and spec.origin:
            path = Path(spec.origin).parent / "data" / "d3.js"
            return path if path.is_file() else None
    return None


def serve(
    paths: RunPaths,
    config: Config,
    model: str | None,
    *,
    address: str = "127.0.0.1",
    port: int = 8361,
    token: str | None = None,
    on_ready: Callable[[str], None] = print,
) -> None:
    """Serve until stopped. On another address than loopback a token is asked for: the one given, or a new one."""
    if token is not None and len(token) < 8:
        raise UserError("--token: at least 8 characters")
    if not is_loopback(address):
        token = token or secrets.token_urlsafe(16)
    asyncio.run(_serve(lambda: Page(paths, config, model), address, port, token, on_ready))


def _log_without_nonsense() -> python_logging.Logger:
    """aiohttp's log, without a traceback for each request that was no HTTP or whose sender hung up."""
    log = python_logging.getLogger("alphago_zero.web")
    noise = (HttpProcessingError, RequestPayloadError, ConnectionError)
    log.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], noise)))
    return log


async def _serve(make_page: Callable, address: str, port: int, token: str | None, on_ready: Callable) -> None:
    runner = web.AppRunner(make_page().application(token), access_log=None, logger=_log_without_nonsense())
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, port)
        try:
            await site.start()
        except OSError as error:
            raise UserError(f"cannot listen on {address} port {port}: {error.strerror}; try another --port") from None
        port = site._server.sockets[0].getsockname()[1]
        shown = f"[{address}]" if ":" in address else address
        on_ready(f"http://{shown}:{port}/" + (f"?token={token}" if token else ""))
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
