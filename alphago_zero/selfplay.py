"""Self-play: many games in lockstep, one network batch for all of them (paper: Methods, 'Self-play').

In: a model, and numbers of games to play. Out: for each finished game its training examples, its SGF and its figures.
`SelfplayWorker` knows nothing of processes or files: `workers.py` runs it in local processes, Ray on other machines.

Every game that is started is finished: a worker that is told to stop keeps its boards, and goes on with them, under
newer weights, in the next generation. (To drop them would prefer short games, and teach passing.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from alphago_zero.alphagozero_agent import game_record, move_note, outcomes
from alphago_zero.config import Config
from alphago_zero.game_log import GOES_ON, RESIGNED, make_log
from alphago_zero.go import BLACK, EMPTY, WHITE, BoardState, opponent
from alphago_zero.mcts import TreeSearch
from alphago_zero.records import make_packed_examples, to_bytes
from alphago_zero.sgf import Note, resignation_result, score_result, write_sgf


@dataclass(frozen=True)
class FinishedGame:
    """A game as it travels from a worker to the writer."""

    number: int
    model: str  # the model that finished it
    holdout: bool
    record: bytes  # TFRecord file
    sgf_clean: str
    sgf_full: str
    statistics: dict


@dataclass
class _Game:
    """One board of a worker."""

    number: int
    may_resign: bool
    holdout: bool
    full: bool = True  # is the current move searched fully, and recorded?


class SelfplayWorker:
    """Plays the games whose numbers it is given, `parallel_games` at a time."""

    def __init__(self, config: Config, rng: np.random.Generator):
        self.config, self.rng = config, rng
        self._search = TreeSearch(
            config.game,
            config.search,
            rng,
            games=config.selfplay.parallel_games,
            no_pass_before=config.selfplay.no_pass_before,
        )
        self._start = BoardState(config.game)
        self._boards: list = [None] * config.selfplay.parallel_games
        self._numbers: deque = deque()
        self._log = make_log(config.selfplay.parallel_games, config.game.points, config.game.length_cap)
        self._evaluator = None
        self._resign_threshold = config.selfplay.resign_threshold

    @property
    def batch_size(self) -> int:
        return self._search.batch_size

    @property
    def counters(self) -> np.ndarray:
        """Simulations, evaluations by the network, evaluations found in the tree, since the start."""
        return self._search.trees.counters

    @property
    def lengths(self) -> list:
        """Moves played in the games under way."""
        return [int(length) for length, game in zip(self._log.length, self._boards) if game is not None]

    @property
    def is_idle(self) -> bool:
        return not self._numbers and not any(self._boards)

    @property
    def is_short(self) -> bool:
        """Fewer games are left to begin than could end in one step."""
        return len(self._numbers) < len(self._boards)

    def take(self, evaluator, resign_threshold: float) -> None:
        """Go on with these weights, in the games under way too."""
        self._evaluator, self._resign_threshold = evaluator, resign_threshold

    def assign(self, numbers: Iterable[int]) -> None:
        """Further games to play."""
        self._numbers.extend(numbers)

    def step(self) -> list:
        """Move where a search is done, then one batch of simulations; returns the games that ended."""
        remaining = self._search.trees.remaining
        finished = [] if remaining.all() else self._go_on(np.flatnonzero(remaining == 0).tolist())
        self._search.step(self._evaluator)
        return finished

    def _go_on(self, slots: list) -> list:
        """Where searches are done: move, begin new games in place of those that end (returned), search again."""
        finished = []
        moving = [slot for slot in slots if self._boards[slot] is not None]
        if moving:
            for slot, ending in zip(moving, self._move(moving)):
                if ending != GOES_ON:
                    finished.append(self._finish(slot, self._boards[slot], ending == RESIGNED))
                    self._boards[slot] = None
        for slot in slots:
            if self._boards[slot] is None:
                self._boards[slot] = self._next_game(slot)
        searching = [slot for slot in slots if self._boards[slot] is not None]
        if searching:
            self._begin_searches(searching)
        return finished

    def _next_game(self, slot: int):
        if not self._numbers:
            return None
        number = self._numbers.popleft()
        luck = np.random.default_rng([self.config.seed, number]).random(2)  # the same whoever plays it
        self._search.set_position(slot, self._start)
        self._log.length[slot] = 0
        return _Game(
            number,
            may_resign=bool(luck[0] >= self.config.selfplay.resign_disabled),
            holdout=bool(luck[1] < self.config.selfplay.holdout),
        )

    def _begin_searches(self, slots: list) -> None:
        """The next move of these games: fully searched and recorded, or (playout cap) quickly."""
        settings = self.config.selfplay
        full = self.rng.random(len(slots)) < settings.full_search_share
        for slot, is_full in zip(slots, full):
            self._boards[slot].full = bool(is_full)
        readouts = np.where(full, self.config.search.readouts, settings.fast_readouts)
        self._search.begin_many(np.array(slots), readouts, full)

    def _move(self, slots: list) -> list:
        """Choose and play a move in these games; returns GOES_ON, RESIGNED or COUNTED for each.

        tau = 1 for the first moves, then tau -> 0. Gumbel search has its chance in the noise.
        """
        games = [self._boards[slot] for slot in slots]
        early = self._log.length[slots] < self.config.selfplay.temperature_moves
        endings = self._search.make_moves(
            np.array(slots),
            self._log,
            record=np.array([game.full for game in games]),
            sample=early & (self.config.search.algorithm == "puct"),
            resign_below=np.array([self._resign_threshold if game.may_resign else -2.0 for game in games]),
        )
        return endings.tolist()

    def _finish(self, slot: int, game: _Game, resigned: bool) -> FinishedGame:
        log, size = self._log, self.config.game.board_size
        played, thought = slice(log.length[slot]), slice(log.thought[slot])
        moves = log.move[slot, played].tolist()
        owners = None
        if resigned:
            result = resignation_result(opponent(int(log.color[slot, thought][-1])))
        else:
            score, owners = self._search.count(slot)
            result = score_result(score)
        winner = {"B": BLACK, "W": WHITE}.get(result[0], EMPTY)
        model = self._evaluator.model.name
        figures = (log.color, log.move, log.value, log.visits, log.move_N, log.move_Q, log.move_P, log.line)
        thoughts = zip(*(array[slot, played].tolist() for array in figures))
        notes = [Note(), *(move_note(size, *thought) for thought in thoughts)]
        recorded = np.flatnonzero(log.recorded[slot, thought])
        examples = b""
        if len(recorded):
            colors = log.color[slot, recorded].astype(np.int8)
            ownership = None if resigned else _ownership(owners, colors)
            z = outcomes(colors, winner)
            examples = to_bytes(make_packed_examples(log.x[slot, recorded], log.pi[slot, recorded], z, ownership))
        return FinishedGame(
            number=game.number,
            model=model,
            holdout=game.holdout,
            record=examples,
            sgf_clean=write_sgf(game_record(self._start, moves, result, (), model)),
            sgf_full=write_sgf(game_record(self._start, moves, result, notes, model)),
            statistics=self._statistics(slot, game, model, result, winner),
        )

    def _statistics(self, slot: int, game: _Game, model: str, result: str, winner: int) -> dict:
        """What is worth knowing about one game: a line of logs/selfplay.jsonl."""
        log, thought = self._log, slice(self._log.thought[slot])
        color, hope, recorded = log.color[slot, thought], log.hope[slot, thought], log.recorded[slot, thought]
        passes = np.flatnonzero(log.move[slot, : log.length[slot]] == self.config.game.points)
        foretold = np.where(color == winner, 1, -1) * log.value[slot, thought]
        return {
            "game": game.number,
            "model": model,
            "holdout": game.holdout,
            "result": result,
            "length": int(log.length[slot]),
            "positions": int(recorded.sum()),
            "passes": len(passes),
            "first_pass": int(passes[0]) if len(passes) else None,
            "may_resign": game.may_resign,
            "winner_low": _lowest(hope[color == winner]),
            "loser_low": _lowest(hope[color != winner]),
            "pi_entropy": _mean(log.pi_entropy[slot, thought][recorded]),
            "p_entropy": _mean(log.p_entropy[slot, thought][recorded]),
            # How well the root's value foretold the outcome: mean of (z - v)^2 over the moves.
            "value_error": _mean((1 - foretold) ** 2) if winner and len(foretold) else None,
        }


def _ownership(owners: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """int8 [T, points]: 1 where the player to move owned the point at the end, -1 the opponent, 0 nobody."""
    mine, theirs = owners == colors[:, None], owners == 3 - colors[:, None]
    return mine.astype(np.int8) - theirs.astype(np.int8)


def _lowest(figures: np.ndarray) -> float:
    return round(float(figures.min()), 4) if len(figures) else 0.0


def _mean(figures: np.ndarray) -> float:
    return round(float(figures.mean()), 4) if len(figures) else 0.0


def calibrate_resignation(lows: Iterable, most_wrong: float, fallback: float, enough: int = 20) -> tuple:
    """The highest threshold at which fewer than `most_wrong` of the resignations would have been wrong.

    `lows`: (winner's, loser's) lowest hope in each game that was played to its end. Returns (threshold, share of wrong
    resignations at it or None); `fallback` where there are not `enough` games to tell.
    """
    lows = np.array(list(lows), dtype=float).reshape(-1, 2)
    if len(lows) < enough:
        return fallback, None
    winner, lowest = lows[:, 0], lows.min(axis=1)
    for threshold in np.arange(-0.70, -1.0, -0.01):
        resigned = int((lowest < threshold).sum())
        if resigned:
            wrong = int((winner < threshold).sum()) / resigned
            if wrong < most_wrong:
                return round(float(threshold), 2), wrong
    return -1.0, None
