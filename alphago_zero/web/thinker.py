"""One search at one board: it runs in a thread, and what it thinks streams to the page meanwhile.

In: a position, a network that many boards share, a number of simulations. Out: `thoughts`, a message a few times a
second and once at the end. A new command stops the search between two batches, within some milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Callable

import numpy as np
from absl import logging

from alphago_zero.config import Config
from alphago_zero.errors import UserError
from alphago_zero.go import BLACK, BoardState
from alphago_zero.mcts import TreeSearch
from alphago_zero.web.limits import Limits, Refusal
from alphago_zero.web.networks import Networks, SharedNetwork

INTERVAL = 0.1  # seconds between two messages of a search
_LINES = 8  # candidate moves that are told with their principal variation
_LINE_LENGTH = 12


def position_message(state: BoardState, **more) -> dict:
    """A position as the page draws it."""
    return {
        "type": "position",
        "size": state.size,
        "komi": state.rules.komi,
        "stones": stones_text(state),
        "legal": "".join("01"[legal] for legal in state.legal_moves()[:-1].astype(int)),
        "to_play": state.to_play,
        "last_move": state.last_move,
        "move_number": state.move_number,
        "captures": [state.captures[color] for color in (1, 2)],
        "over": state.is_game_over,
        **more,
    }


def stones_text(state: BoardState) -> str:
    """A letter a point, row by row: `.` empty, `X` black, `O` white."""
    return "".join(".XO"[color] for color in state.board.ravel())


def black_win_rate(value: float, to_play: int) -> float:
    """A value for the player to move, as Black's chance to win."""
    return round((1 + (value if to_play == BLACK else -value)) / 2, 4)


async def tell_failure(error: Exception, send: Callable) -> None:
    """Something that ran beside the conversation went wrong: say so, if anybody is there."""
    words = str(error)
    if not isinstance(error, UserError):
        logging.error("a search failed", exc_info=error)
        words = "Something went wrong; the server's log says what."
    with contextlib.suppress(ConnectionError):
        await send({"type": "error", "message": words})


@dataclass(frozen=True)
class Desk:
    """What all boards of the page share."""

    networks: Networks
    config: Config
    limits: Limits
    pool: Executor  # the threads in which they search
    counts: asyncio.Semaphore  # turns of those who count a game
    analyses: asyncio.Semaphore  # turns of those who analyse one

    async def in_thread(self, function: Callable, *arguments, **options):
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, functools.partial(function, *arguments, **options))

    async def network(self, message: dict) -> SharedNetwork:
        """The model that a message names; without a name the one that the page serves."""
        name = message.get("model")
        if name is not None and not isinstance(name, str):
            raise Refusal("model must be a name.")
        return await self.in_thread(self.networks.get, name)


class Thinker:
    """The search tree of one board."""

    def __init__(self, desk: Desk, send: Callable):
        # Gumbel search spends a budget that is fixed beforehand; a search that goes on and is watched is PUCT.
        self._config = replace(desk.config.search, algorithm="puct")
        self._desk, self._send, self._rng = desk, send, np.random.default_rng()
        self._task: asyncio.Task | None = None
        self._stop = False
        self._fresh: dict | None = None  # thoughts that wait to be sent
        self.state: BoardState | None = None
        self.search: TreeSearch | None = None
        self.network: SharedNetwork | None = None

    def set_position(self, state: BoardState, network: SharedNetwork) -> None:
        """Think about `state` from now on. Nothing may be running."""
        if self.search is None or self.search.rules != state.rules or network is not self.network:
            self.search = TreeSearch(state.rules, self._config, self._rng, leaves=self._config.leaves)
        self.search.set_position(0, state)
        self.state, self.network = state, network

    def play(self, move: int) -> None:
        """Go on in the subtree of a legal move."""
        state = self.state.play_move(move)
        self.search.play(0, move)
        self.state = state

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, readouts: int, then: Callable | None = None) -> None:
        """Search on, up to so many visits of the root in all; `then`, a coroutine function, follows unless stopped."""
        self._stop = False
        self._task = asyncio.create_task(self._run(readouts, then))

    async def stop(self) -> None:
        """End a running search; its tree stays."""
        while self.is_busy and self._task is not asyncio.current_task():
            self._stop = True  # in the loop: what follows a search may have started the next one
            await asyncio.wait({self._task})

    async def finish(self) -> None:
        """Wait for the search, and for what follows it."""
        while self.is_busy:
            await asyncio.wait({self._task})

    async def _run(self, readouts: int, then: Callable | None) -> None:
        try:
            work = asyncio.ensure_future(self._desk.in_thread(self._search, readouts))
            while not (await asyncio.wait({work}, timeout=INTERVAL))[0]:
                if self._fresh is not None:
                    thoughts, self._fresh = self._fresh, None
                    await self._send(thoughts)
            work.result()
            if not self._stop:
                await self._send(self.thoughts(readouts, done=True))
                if then is not None:
                    await then()
        except ConnectionError:
            self._stop = True  # the page has gone
        except Exception as error:
            await tell_failure(error, self._send)

    def _search(self, readouts: int) -> None:
        """In a thread: simulations, and now and then a look at the root."""
        search, told = self.search, time.monotonic()
        search.begin(0, max(readouts - self.visits, 0))
        while search.trees.remaining[0] > 0 and not self._stop:
            search.step(self.network)
            if self._fresh is None and time.monotonic() - told >= INTERVAL:
                self._fresh, told = self.thoughts(readouts), time.monotonic()
        search.trees.remaining[0] = 0
        self._fresh = None

    @property
    def visits(self) -> int:
        """Simulations that the root has seen."""
        return self.search.root(0, self.state).N

    @property
    def black_win_rate(self) -> float | None:
        """By the search so far; None before its first evaluation."""
        return black_win_rate(self.search.root_value(0), self.state.to_play) if self.visits else None

    def thoughts(self, target: int, done: bool = False) -> dict:
        """What the search says at its root."""
        root = self.search.root(0, self.state)
        to_play = self.state.to_play
        candidates = []
        for move in root.ranked_moves()[:_LINES]:
            child = root.child(move)
            line = [move, *(child.principal_variation(_LINE_LENGTH - 1) if child else ())]
            candidates.append(
                {
                    "move": move,
                    "visits": int(root.child_N[move]),
                    "win_rate": round((1 + float(root.child_Q[move])) / 2, 4),  # of the player to move
                    "prior": round(float(root.child_P[move]), 4),
                    "line": line,
                }
            )
        return {
            "type": "thoughts",
            "move_number": self.state.move_number,
            "to_play": to_play,
            "visits": root.child_N.tolist(),
            "policy": [round(float(p), 4) for p in root.child_P],
            "black_win_rate": self.black_win_rate,
            "readouts": root.N,
            "target": target,
            "candidates": candidates,
            "done": done,
        }
