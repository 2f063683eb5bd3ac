"""Games to look through: files that a person opens, and games of the run.

In: SGF bytes, or the name of a file below the run's `data/sgf`; messages of one page (`look`, `analyze`, `stop`).
Out: a game with all its positions, the analysis of the whole game, and thoughts about the position that is looked at,
variations included.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Callable

from alphago_zero.analysis import PositionReport, analyze_game
from alphago_zero.constants import RunPaths
from alphago_zero.go import IllegalMove
from alphago_zero.sgf import GameRecord, SgfError, read_sgf
from alphago_zero.web.limits import Limits, Refusal, move_list, whole_number
from alphago_zero.web.networks import Leash, SharedNetwork, Stopped
from alphago_zero.web.thinker import INTERVAL, Desk, Thinker, position_message, stones_text, tell_failure

_NEWEST = 48  # games of the run that are listed
_FOLDERS = 4  # newest folders of each kind that are looked into


class GameShelf:
    """The games that were opened, and the way to those of the run."""

    def __init__(self, paths: RunPaths, limits: Limits):
        self._folder, self._limits = paths.data / "sgf", limits
        self._games: OrderedDict = OrderedDict()  # id: (record, positions)
        self._heads: OrderedDict = OrderedDict()  # (path, time): what the list says about a game
        self._lock = threading.Lock()

    def open_bytes(self, data: bytes, name: str = "") -> dict:
        """Read a game and keep it; what the page needs to show it."""
        if not data.strip():
            raise Refusal("The file is empty.")
        record = read_sgf(data)
        states = list(record.states())
        key = secrets.token_hex(8)
        with self._lock:
            self._games[key] = (record, states)
            while len(self._games) > self._limits.games:
                self._games.popitem(last=False)
        notes = record.notes or [None] * len(states)
        return {
            "id": key,
            "name": name,
            "size": record.rules.board_size,
            "komi": record.rules.komi,
            "black": record.black_name,
            "white": record.white_name,
            "result": record.result,
            "first": states[0].to_play,
            "moves": [[color, move] for color, move in record.moves],
            "positions": [stones_text(state) for state in states],
            "captures": [[state.captures[1], state.captures[2]] for state in states],
            "comments": [note.comment if note else "" for note in notes],
            "win_rates": [note.black_win_rate if note else None for note in notes],
        }

    def open_file(self, name: str) -> dict:
        """A game of the run by its path below `data/sgf`."""
        path = self._inside(name)
        try:
            # O_NOFOLLOW: the last part may have become a link since it was looked at.
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                data = file.read(self._limits.upload_bytes + 1)
        except OSError:
            raise Refusal("There is no such game.") from None
        if len(data) > self._limits.upload_bytes:
            raise Refusal("The file is too large for a game.")
        try:
            return self.open_bytes(data, name)
        except SgfError as error:
            raise SgfError(str(error).replace("SGF data", name, 1)) from None

    def _inside(self, name: str) -> Path:
        """The file that `name` means, all links followed; it must be an SGF file below the folder."""
        missing = Refusal("There is no such game.")
        try:
            folder = self._folder.resolve(strict=True)
            path = (folder / name).resolve(strict=True)
            if not path.is_relative_to(folder) or path.suffix != ".sgf" or not path.is_file():
                raise missing
        except (OSError, ValueError, RuntimeError):  # no such file, a zero byte, a ring of links
            raise missing from None
        return path

    def get(self, message: dict) -> tuple[GameRecord, list]:
        """The opened game that a message names, and its positions."""
        key = message.get("game")
        with self._lock:
            if not isinstance(key, str) or key not in self._games:
                raise Refusal("That game is no longer open here: open it again.")
            self._games.move_to_end(key)
            return self._games[key]

    def newest(self) -> list:
        """The newest games of self-play and of matches, newest first."""
        found = []
        for pattern in ("[0-9]*/clean", "evaluate/*", "ladder/*"):
            folders = [folder for folder in self._folder.glob(pattern) if folder.is_dir()]
            for folder in sorted(folders, key=_time)[-_FOLDERS:]:
                found += [(_time(path), path) for path in folder.glob("*.sgf")]
        found.sort(key=lambda entry: (entry[0], entry[1].name), reverse=True)
        heads = (self._head(path, written) for written, path in found[:_NEWEST])
        return [head for head in heads if head]

    def _head(self, path: Path, written: float) -> dict | None:
        key = (path, written)
        if key not in self._heads:
            try:
                record = read_sgf(path)
            except SgfError:
                return None
            self._heads[key] = {
                "path": path.relative_to(self._folder).as_posix(),
                "black": record.black_name,
                "white": record.white_name,
                "result": record.result,
                "moves": len(record.moves),
                "match": path.relative_to(self._folder).parts[0] in ("evaluate", "ladder"),
            }
            while len(self._heads) > 8 * _NEWEST:
                self._heads.popitem(last=False)
        return self._heads[key]


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _told(report: PositionReport) -> dict:
    """A report as `thoughts` are told."""
    return {
        "black_win_rate": round(report.black_win_rate, 4),
        "loss": None if report.loss is None else round(report.loss, 4),
        "candidates": [
            {
                "move": candidate.move,
                "visits": candidate.visits,
                "win_rate": round(candidate.win_rate, 4),
                "prior": round(candidate.prior, 4),
                "line": list(candidate.line),
            }
            for candidate in report.candidates
        ],
    }


class ReviewBoard:
    """One game under review at one page."""

    def __init__(self, desk: Desk, send: Callable, shelf: GameShelf):
        self._desk, self._send, self._shelf = desk, send, shelf
        self._thinker = Thinker(desk, send)
        self._analysis: asyncio.Task | None = None
        self._leash: Leash | None = None

    async def handle(self, message: dict) -> None:
        handlers = {"look": self._look, "analyze": self._analyze, "stop": self._stop}
        handler = handlers.get(message["type"])
        if handler is None:
            raise Refusal(f"type must be one of {', '.join(handlers)}.")
        await handler(message)

    async def close(self) -> None:
        await self._end_analysis()
        await self._thinker.stop()

    async def _look(self, message: dict) -> None:
        """Show the position after `move` moves and a variation from there; think about it, if asked."""
        record, states = self._shelf.get(message)
        number = whole_number(message, "move", 0, len(states) - 1)
        state, variation, refused = states[number], [], None
        for move in move_list(message, "variation", record.rules.points, most=200):
            try:
                state = state.play_move(move)
            except IllegalMove as error:  # the page goes on from what was legal
                refused = str(error)
                break
            variation.append(move)
        readouts = whole_number(message, "readouts", 0, self._desk.limits.readouts, 0)
        question = whole_number(message, "question", 0, 2**31, 0)  # by which the page knows late answers
        await self._thinker.stop()
        await self._send(position_message(state, question=question, variation=variation, refused=refused))
        if readouts and not state.is_game_over:
            network = await self._network(message, record)
            self._thinker.set_position(state, network)
            self._thinker.start(readouts)

    async def _stop(self, message: dict) -> None:
        await self._end_analysis()
        await self._thinker.stop()

    async def _analyze(self, message: dict) -> None:
        """Every position of the game, as `controller.py analyze` does it; it takes a while, so it runs beside."""
        record, states = self._shelf.get(message)
        readouts = whole_number(message, "readouts", 1, self._desk.limits.readouts, 100)
        network = await self._network(message, record)
        await self._end_analysis()
        if self._desk.analyses.locked():
            raise Refusal("Other games are being analysed; try again when they are done.")
        self._analysis = asyncio.create_task(self._run_analysis(message["game"], record, network, readouts))

    async def _end_analysis(self) -> None:
        if self._analysis is not None:
            self._leash.is_cut = True
            await asyncio.wait({self._analysis})
            self._analysis = None

    async def _run_analysis(self, game: str, record: GameRecord, network: SharedNetwork, readouts: int) -> None:
        progress = {"done": 0, "total": 1}
        options = {"readouts": readouts, "on_progress": lambda done, total: progress.update(done=done, total=total)}
        leash = self._leash = Leash(network)
        try:
            async with self._desk.analyses:
                work = asyncio.ensure_future(
                    self._desk.in_thread(analyze_game, record, leash, self._desk.config, **options)
                )
                while not (await asyncio.wait({work}, timeout=2 * INTERVAL))[0]:
                    with contextlib.suppress(ConnectionError):  # the leash ends it when the page has gone
                        await self._send({"type": "progress", "game": game, **progress})
            await self._send({"type": "report", "game": game, "positions": [_told(report) for report in work.result()]})
        except (Stopped, ConnectionError):
            pass  # nobody waits for it
        except Exception as error:
            await tell_failure(error, self._send)

    async def _network(self, message: dict, record: GameRecord) -> SharedNetwork:
        network = await self._desk.network(message)
        size = network.model.rules.board_size
        if size != record.rules.board_size:
            raise Refusal(
                f"{network.model.name} knows only {size}x{size} boards; this game is on {record.rules.board_size}x"
                f"{record.rules.board_size}. You can look through it, but not analyse it."
            )
        return network
