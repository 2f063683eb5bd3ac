"""A game of a person against a model.

In: messages of one page (`new`, `play`, `pass`, `undo`, `resign`, `think`, `score`, `sgf`). Out: positions,
thoughts, scores and SGF as messages. The game lives as long as the connection; the page keeps its moves, and hands
them in again with `new` when it comes back.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Callable

import numpy as np

from alphago_zero.alphagozero_agent import best_child_value, search_note
from alphago_zero.go import BLACK, WHITE, BoardState, opponent
from alphago_zero.scoring import dead_stones, final_owners, score
from alphago_zero.sgf import GameRecord, Note, resignation_result, score_result, write_sgf
from alphago_zero.web.limits import Refusal, choice, move_list, number, whole_number
from alphago_zero.web.networks import Leash, SharedNetwork, Stopped
from alphago_zero.web.thinker import Desk, Thinker, position_message, tell_failure

_COLORS = {"black": BLACK, "white": WHITE, "both": 0}  # whom the person plays; 0: both sides


def handicap_points(size: int) -> list:
    """Where handicap stones go, in order; none on boards below 7x7."""
    if size < 7:
        return []
    low = 2 if size < 13 else 3
    high, middle = size - 1 - low, size // 2
    corners = [(low, high), (high, low), (high, high), (low, low)]
    if size % 2 == 0:
        return [row * size + column for row, column in corners]
    sides = [(middle, low), (middle, high), (low, middle), (high, middle)]
    return [row * size + column for row, column in [*corners, *sides, (middle, middle)]]


def handicap_stones(size: int, count: int) -> list:
    """The usual places of `count` stones: 2 to 9 of them, or none."""
    points = handicap_points(size)
    if count == 0:
        return []
    if not 2 <= count <= len(points):
        most = f"from 2 to {len(points)} stones" if points else "none on so small a board"
        raise Refusal(f"handicap must be 0, or {most}.")
    if count in (5, 7):  # the odd one stands in the centre
        return [*points[: count - 1], points[-1]]
    return points[:count]


class PlayBoard:
    """One game at one page."""

    def __init__(self, desk: Desk, send: Callable):
        self._desk, self._send = desk, send
        self._thinker = Thinker(desk, send)
        self._states: list = []  # BoardStates from the start of the game
        self._notes: list = []  # one for each of them
        self._handicap: list = []
        self._person, self._readouts, self._thinks = BLACK, 100, False
        self._result: str | None = None
        self._network: SharedNetwork | None = None
        self._counting: asyncio.Task | None = None
        self._leash: Leash | None = None

    async def handle(self, message: dict) -> None:
        handlers = {
            "new": self._new,
            "play": self._play,
            "undo": self._undo,
            "resign": self._resign,
            "think": self._think,
            "score": self._score,
            "sgf": self._sgf,
        }
        handler = handlers.get(message["type"])
        if handler is None:
            raise Refusal(f"type must be one of {', '.join(handlers)}.")
        if self._network is None and message["type"] != "new":
            raise Refusal("Begin a game first.")
        await handler(message)

    async def thought(self) -> None:
        """Wait until the engine has nothing to do."""
        await self._thinker.finish()
        if self._counting is not None:
            await asyncio.wait({self._counting})

    async def close(self) -> None:
        await self._stop()

    async def _stop(self) -> None:
        """End whatever the engine is at."""
        await self._thinker.stop()
        if self._counting is not None and self._counting is not asyncio.current_task():
            if self._leash is not None:
                self._leash.is_cut = True
            self._counting.cancel()
            await asyncio.wait({self._counting})
            self._counting = None
            await self._thinker.stop()  # which the count may have started again

    # --- commands -----------------------------------------------------------------------------------------------------

    async def _new(self, message: dict) -> None:
        """Begin a game, or go on with one whose moves are given."""
        person = _COLORS[choice(message, "color", tuple(_COLORS), "black")]
        network = await self._desk.network(message)
        readouts = whole_number(message, "readouts", 1, self._desk.limits.readouts, 100)
        learned = network.model.rules
        rules = replace(learned, komi=number(message, "komi", -100, 100, learned.komi))
        if rules.komi * 2 != round(rules.komi * 2):
            raise Refusal("komi must be a whole or a half number.")
        handicap = handicap_stones(rules.board_size, whole_number(message, "handicap", 0, 9, 0))
        start = BoardState.setup(rules, handicap, (), WHITE if handicap else BLACK)
        states = [start]
        for move in move_list(message, "moves", rules.points):
            states.append(states[-1].play_move(move))
        await self._stop()
        self._network, self._person, self._readouts, self._handicap = network, person, readouts, handicap
        self._thinks = message.get("think") is True
        self._states, self._notes, self._result = states, [Note()] * len(states), None
        self._thinker.set_position(self._state, network)
        await self._go_on()

    async def _play(self, message: dict) -> None:
        move = whole_number(message, "move", 0, self._state.rules.points)
        if self._result is not None or self._state.is_game_over:
            raise Refusal("The game is over: undo, or begin a new one.")
        if not self._is_persons_turn:
            raise Refusal("It is not your turn.")
        self._state.play_move(move)  # refuses what is illegal before the search is stopped
        await self._stop()
        self._advance(move)
        await self._go_on()

    async def _undo(self, message: dict) -> None:
        """Back to the last position in which the person was to move."""
        await self._stop()
        count = len(self._states) - 1
        if self._result is not None and not self._state.is_game_over:
            count += 1  # a resignation is taken back, and no move
        while count > 0:
            count -= 1
            if self._person in (0, self._states[count].to_play):
                break
        del self._states[count + 1 :], self._notes[count + 1 :]
        self._result = None
        self._thinker.set_position(self._state, self._network)
        await self._go_on()

    async def _resign(self, message: dict) -> None:
        if self._result is not None or self._state.is_game_over:
            raise Refusal("The game is over: undo, or begin a new one.")
        await self._stop()
        loser = self._person or self._state.to_play
        self._result = resignation_result(opponent(loser))
        await self._send_position()

    async def _think(self, message: dict) -> None:
        """Let the engine think aloud at the person's turn, too; or no longer."""
        self._thinks = message.get("on") is True
        if self._is_persons_turn or self._result is not None:
            await self._stop()
            self._ponder()

    async def _score(self, message: dict) -> None:
        """Who owns what, as the model sees it now."""
        await self._stop()
        self._count()

    async def _sgf(self, message: dict) -> None:
        names = {0: ("Black", "White"), BLACK: ("You", self._engine_name), WHITE: (self._engine_name, "You")}
        black, white = names[self._person]
        state = self._state
        record = GameRecord(
            rules=state.rules,
            moves=tuple((self._states[k].to_play, move) for k, move in enumerate(state.moves)),
            result=self._result or "?",
            black_name=black,
            white_name=white,
            black_setup=tuple(self._handicap),
            to_play=self._states[0].to_play,
            notes=tuple(self._notes),
        )
        await self._send({"type": "sgf", "text": write_sgf(record)})

    # --- the game -----------------------------------------------------------------------------------------------------

    @property
    def _state(self) -> BoardState:
        return self._states[-1]

    @property
    def _is_persons_turn(self) -> bool:
        return self._person in (0, self._state.to_play)

    @property
    def _engine_name(self) -> str:
        return f"{self._network.model.name}, {self._readouts} readouts"

    def _advance(self, move: int) -> None:
        """Play for whoever is to move; what the search thought so far becomes a note."""
        note = Note()
        if self._thinker.visits > 1:
            note = search_note(self._thinker.search, 0, self._state.to_play, move)
            # The curve is about positions: this one's chance stands where it was searched.
            self._notes[-1] = replace(self._notes[-1], black_win_rate=note.black_win_rate)
            note = replace(note, black_win_rate=None)
        self._thinker.play(move)
        self._states.append(self._thinker.state)
        self._notes.append(note)

    async def _go_on(self, position: bool = True) -> None:
        """Tell the position, and do what comes next: think, ponder, or count."""
        if position:
            await self._send_position()
        if self._result is not None:
            return
        if self._state.is_game_over:
            self._count()
        elif self._is_persons_turn:
            self._ponder()
        else:
            self._thinker.start(self._readouts, then=self._answer)

    def _ponder(self) -> None:
        if self._thinks and not self._state.is_game_over:
            self._thinker.start(self._readouts, then=self._keep_win_rate)

    async def _keep_win_rate(self) -> None:
        self._notes[-1] = replace(self._notes[-1], black_win_rate=self._thinker.black_win_rate)

    async def _answer(self) -> None:
        """The engine's move, after its search."""
        search = self._thinker.search
        hope = max(search.root_value(0), best_child_value(search, 0))
        if hope < self._desk.config.selfplay.resign_threshold:
            await self._keep_win_rate()
            self._result = resignation_result(opponent(self._state.to_play))
            await self._send_position()
            return
        self._advance(search.best_move(0))
        await self._go_on()

    async def _send_position(self) -> None:
        state = self._state
        await self._send(
            position_message(
                state,
                moves=list(state.moves),
                first=self._states[0].to_play,
                handicap=self._handicap,
                person=self._person,
                persons_turn=self._is_persons_turn,
                result=self._result,
                model=self._network.model.name,
                readouts=self._readouts,
                win_rates=[note.black_win_rate for note in self._notes],
            )
        )

    def _count(self) -> None:
        self._counting = asyncio.create_task(self._send_score())

    async def _send_score(self) -> None:
        """Play the game on and tell who owns what; for a game that is over this is its result."""
        state, final = self._state, self._state.is_game_over
        try:
            async with self._desk.counts:
                leash = self._leash = Leash(self._network)
                rng = np.random.default_rng()
                owners = await self._desk.in_thread(final_owners, state, leash, self._desk.config, rng=rng)
            points = score(owners, state.rules.komi)
            if final:
                self._result = score_result(points)
            await self._send(
                {
                    "type": "score",
                    "owners": "".join(".XO"[owner] for owner in owners),
                    "dead": dead_stones(state, owners),
                    "score": points,
                    "result": score_result(points),
                    "final": final,
                    "move_number": state.move_number,
                }
            )
            if not final:
                await self._go_on(position=False)
        except (Stopped, ConnectionError):
            pass  # nobody waits for it
        except Exception as error:
            await tell_failure(error, self._send)
