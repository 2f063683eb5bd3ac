"""Who may sit at a board: models, raw networks, random play, UCT, any GTP program, a person.

In: a word (`best@400`, `raw:latest`, `random`, `uct:1000`, `gtp:gnugo --mode gtp`, `human`), read by `parse_player`.
Out: a `Player`, which sits at many boards at once: it is told where games start and what is played there, and chooses
moves at all boards where it is on turn together, so that a network gets one batch and programs think side by side.
"""

from __future__ import annotations

import dataclasses
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from alphago_zero.alphagozero_agent import best_child_value
from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.coordinates import from_gtp, to_gtp
from alphago_zero.errors import UserError
from alphago_zero.features import extract_features
from alphago_zero.go import BLACK, COLOR_NAMES, BoardState, Rules
from alphago_zero.gtp_client import GtpDied, GtpError, GtpHang, GtpProgram, find_program
from alphago_zero.inference import load_evaluator
from alphago_zero.mcts import TreeSearch
from alphago_zero.model import ModelError, load_model_info, resolve_model
from alphago_zero.random_play import random_seed, sensible_random_move
from alphago_zero.uct import UctSearch

KINDS = "a model (path, name, version, best, latest, shipped; @READOUTS), raw:MODEL, random, uct:N, gtp:COMMAND, human"
_MOST_PLAYOUTS = 100_000  # of UCT: its tree takes a kilobyte a playout
_MOST_READOUTS = 1_000_000
_MOST_LEAVES = 64


class PlayerError(UserError):
    """A player that cannot be; the message names it."""


@dataclass(frozen=True)
class PlayerSpec:
    """A player as it was asked for; can be sent to another process and seated there."""

    kind: str  # model, raw, random, uct, gtp or human
    label: str  # how results name it
    model: Path | None = None
    readouts: int = 0  # simulations or playouts a move
    leaves: int = 1  # of one tree in a batch, as when a model plays a single game
    command: tuple[str, ...] = ()  # of a program

    @property
    def has_network(self) -> bool:
        return self.model is not None

    def rules(self) -> Rules | None:
        """Of its model; None if it plays by any."""
        return load_model_info(self.model).rules if self.model else None


def parse_player(word: str, paths: RunPaths, readouts: int) -> PlayerSpec:
    """The player that a person's word means; `readouts` are those of a model that does not say its own."""
    kind, colon, rest = word.partition(":")
    if kind == "random" or kind == "human":
        if colon:
            raise PlayerError(f"{word}: {kind} takes nothing behind it")
        return PlayerSpec(kind, kind)
    if kind == "uct":
        return PlayerSpec(kind, word, readouts=_whole_number(rest, _MOST_PLAYOUTS, word, "uct:1000"))
    if kind == "gtp" and colon:
        return PlayerSpec(kind, f"gtp:{' '.join(rest.split())}", command=_program(rest, word))
    if kind == "raw" and colon:
        model = resolve_model(rest, paths)
        return PlayerSpec(kind, f"raw:{model.name}", model)
    name, at, numbers = word.rpartition("@")
    count, times, width = numbers.partition("x")
    if at:
        readouts = _whole_number(count, _MOST_READOUTS, word, "best@400")
    leaves = _whole_number(width, _MOST_LEAVES, word, "best@400x8") if at and times else 1
    try:
        model = resolve_model(name or word, paths)
    except ModelError as error:
        if colon and kind.isalnum():
            raise PlayerError(f"no player {word}: there is {KINDS}") from None
        raise error
    label = f"{model.name}@{readouts}" + (f"x{leaves}" if leaves > 1 else "")
    return PlayerSpec("model", label, model, readouts, leaves)


def _whole_number(text: str, most: int, word: str, example: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most):
        raise PlayerError(f"{word}: expected a number from 1 to {most:,}, as in {example}")
    return int(text)


def _program(command: str, word: str) -> tuple[str, ...]:
    try:
        parts = tuple(shlex.split(command))
    except ValueError as error:
        raise PlayerError(f"{word}: {error}") from None
    if not parts:
        raise PlayerError(f"{word} needs a command, as in gtp:gnugo --mode gtp")
    if not find_program(parts[0]):
        raise PlayerError(f"{word}: no program {parts[0]} (is it installed, and on the PATH?)")
    return parts


def common_rules(specs: Sequence[PlayerSpec], config: Config) -> Rules:
    """By which rules they play: those of the first model; without one, the configuration's."""
    found = [(spec, rules) for spec in specs for rules in [spec.rules()] if rules]
    for spec, rules in found[1:]:
        if rules.board_size != found[0][1].board_size:
            sizes = [f"{s.label} on {r.board_size}x{r.board_size}" for s, r in (found[0], (spec, rules))]
            raise PlayerError(f"{sizes[0]} cannot play {sizes[1]}")
    return found[0][1] if found else config.game


# --- at the boards ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Concession:
    """How a player lost a game by other means than the count."""

    letter: str  # of the result: R resigned, T ran out of time, F forfeited
    reason: str


class Player:
    """Sits at `boards` boards. What it does not need to know it may ignore."""

    def start(self, board: int, state: BoardState) -> None:
        """A game begins at a board; `state.moves` are its opening."""

    def think(self, boards: Sequence[int], states: Sequence[BoardState]) -> None:
        """Begin to think about these positions, if that can go on by itself; `choose` comes next."""

    def choose(self, boards: Sequence[int], states: Sequence[BoardState]) -> list[int | Concession]:
        """Its moves in these positions."""
        raise NotImplementedError

    def see(self, board: int, state: BoardState, move: int, own: bool) -> None:
        """`move` was played in `state`: the one it chose (`own`), or its opponent's."""

    def final_score(self, board: int) -> str | None:
        """How it counts the game that ended there ("B+3.5"), if it counts."""
        return None

    def close(self) -> None:
        """Leave all boards."""


def seat_player(
    spec: PlayerSpec, config: Config, rng: np.random.Generator, *, boards: int, batch: int, evaluator=None
) -> Player:
    """The player at so many boards, on turn at no more than `batch` of them at a time; rules are `config.game`."""
    if spec.kind == "random":
        return RandomPlayer(rng)
    if spec.kind == "uct":
        return UctPlayer(config.game, spec.readouts, rng)
    if spec.kind == "gtp":
        return ProgramPlayer(spec.command, config.game, boards, config.evaluation.timeout)
    if spec.kind == "human":
        return HumanPlayer()
    evaluator = evaluator or load_match_evaluator(spec, config, batch)
    if spec.kind == "raw":
        return RawPlayer(evaluator)
    return ModelPlayer(evaluator, config, rng, readouts=spec.readouts, leaves=spec.leaves, boards=boards)


def load_match_evaluator(spec: PlayerSpec, config: Config, batch: int):
    return load_evaluator(spec.model, batch * spec.leaves, 1, config.inference.backend, config.inference.precision)


class ModelPlayer(Player):
    """A network with search: without noise, always the best move; it resigns as in self-play."""

    def __init__(self, evaluator, config: Config, rng: np.random.Generator, *, readouts: int, leaves: int, boards: int):
        self._evaluator, self._readouts = evaluator, readouts
        self._resign_threshold = config.selfplay.resign_threshold
        settings = dataclasses.replace(config.search, algorithm=config.evaluation.algorithm)
        self._search = TreeSearch(config.game, settings, rng, games=boards, leaves=leaves)

    def start(self, board: int, state: BoardState) -> None:
        self._search.set_position(board, state)

    def choose(self, boards, states):
        search, count = self._search, len(boards)
        search.begin_many(np.array(boards, np.int64), np.full(count, self._readouts), np.zeros(count, bool))
        search.run(self._evaluator)
        return [self._choice(board) for board in boards]

    def _choice(self, board: int) -> int | Concession:
        hope = max(self._search.root_value(board), best_child_value(self._search, board))
        if hope < self._resign_threshold:
            return Concession("R", f"it expected {hope:+.2f}")
        return self._search.best_move(board)

    def see(self, board: int, state: BoardState, move: int, own: bool) -> None:
        self._search.play(board, move)


class RawPlayer(Player):
    """A network without search: the legal move with the highest p."""

    def __init__(self, evaluator):
        self._evaluator = evaluator

    def choose(self, boards, states):
        p, _ = self._evaluator.evaluate(np.stack([extract_features(state) for state in states]))
        legal = np.stack([state.legal_moves() for state in states])
        return np.where(legal, p, -1).argmax(axis=1).tolist()


class RandomPlayer(Player):
    """Uniformly random legal moves that do not fill own eyes."""

    def __init__(self, rng: np.random.Generator):
        self._random = random_seed(rng)

    def choose(self, boards, states):
        return [sensible_random_move(state, self._random) for state in states]


class UctPlayer(Player):
    """UCT with random playouts; each move is a new search."""

    def __init__(self, rules: Rules, playouts: int, rng: np.random.Generator):
        self._search = UctSearch(rules, playouts, rng)

    def choose(self, boards, states):
        return [self._search.best_move(state) for state in states]


class ProgramPlayer(Player):
    """A GTP program, one process a board. One that dies, hangs or talks nonsense loses the game and is started anew.

    What it does wrong before its first game is an error: then the command is not a Go program that can play here.
    """

    def __init__(self, command: Sequence[str], rules: Rules, boards: int, timeout: float):
        self._command, self._rules, self._timeout = command, rules, timeout
        self._programs: list[GtpProgram | None] = [None] * boards
        self._faults: list[Concession | None] = [None] * boards  # what it did wrong when it was not on turn
        try:
            self._programs[0] = self._start_program()
        except GtpError as error:
            raise PlayerError(f"{shlex.join(command)}: {error}") from None

    def _start_program(self) -> GtpProgram:
        program = GtpProgram(self._command, self._timeout)
        try:
            for command in (f"boardsize {self._rules.board_size}", f"komi {self._rules.komi:g}", "clear_board"):
                program.ask(command)
        except GtpError:
            program.close(patience=0)
            raise
        return program

    def start(self, board: int, state: BoardState) -> None:
        self._faults[board] = None
        try:
            if self._programs[board] is None:
                self._programs[board] = self._start_program()
            self._programs[board].ask("clear_board")
            color = state.to_play if len(state.moves) % 2 == 0 else 3 - state.to_play
            for move in state.moves:
                self._programs[board].ask(self._play(color, move))
                color = 3 - color
        except GtpError as error:
            self._fail(board, error)

    def _play(self, color: int, move: int) -> str:
        return f"play {COLOR_NAMES[color].lower()} {to_gtp(move, self._rules.board_size)}"

    def _fail(self, board: int, error: GtpError) -> Concession:
        """The program loses its game, and the next one begins with a new process."""
        if self._programs[board]:
            self._programs[board].close(patience=0)
        self._programs[board] = None
        self._faults[board] = Concession("T" if isinstance(error, GtpHang) else "F", str(error))
        return self._faults[board]

    def think(self, boards, states):
        for board, state in zip(boards, states):
            if not self._faults[board]:
                try:
                    self._programs[board].send(self._genmove(state))
                except GtpError as error:
                    self._fail(board, error)

    @staticmethod
    def _genmove(state: BoardState) -> str:
        return f"genmove {COLOR_NAMES[state.to_play].lower()}"

    def choose(self, boards, states):
        return [self._answer(board, state) for board, state in zip(boards, states)]

    def _answer(self, board: int, state: BoardState) -> int | Concession:
        if self._faults[board]:
            return self._faults[board]
        try:
            answer = self._programs[board].receive(self._genmove(state))
        except GtpError as error:
            return self._fail(board, error)
        if answer.lower() == "resign":
            return Concession("R", "it resigned")
        try:
            move = from_gtp(answer, state.size)
        except ValueError:
            return Concession("F", f"it answered {answer[:40]!r}, which is no move")
        return move

    def see(self, board: int, state: BoardState, move: int, own: bool) -> None:
        if own or self._faults[board]:
            return
        try:
            self._programs[board].ask(self._play(state.to_play, move))
        except GtpError as error:
            self._fail(board, error)

    def final_score(self, board: int) -> str | None:
        if self._faults[board]:
            return None
        try:
            return self._programs[board].ask("final_score")
        except (GtpDied, GtpHang) as error:
            self._fail(board, error)
        except GtpError:  # it does not count
            pass
        return None

    def close(self) -> None:
        programs = [program for program in self._programs if program]
        for program in programs:
            program.quit()
        deadline = time.monotonic() + 2
        for program in programs:
            program.close(patience=max(deadline - time.monotonic(), 0))


class HumanPlayer(Player):
    """A person at the terminal."""

    def choose(self, boards, states):
        return [self._ask(state) for state in states]

    def see(self, board, state, move, own):
        after = state.play_move(move)
        if after.is_game_over:
            print(f"\n{after!r}", file=sys.stderr)

    def _ask(self, state: BoardState) -> int | Concession:
        print(f"\n{state!r}", file=sys.stderr)
        while True:
            stone = "X" if state.to_play == BLACK else "O"
            print(f"Your move ({stone}; D4, pass or resign): ", end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
            if not line:
                raise PlayerError("human: the input ended before the game did")
            line = line.strip()
            if line.lower() == "resign":
                return Concession("R", "resigned")
            try:
                move = from_gtp(line, state.size)
                state.play_move(move)
            except ValueError as error:
                print(error, file=sys.stderr)
                continue
            return move
