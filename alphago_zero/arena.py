"""Matches between any two players, in one process a core (paper: Methods, 'Evaluator').

In: two players. Out: who won how many games, with a 95 % interval, and each game with the reason of its result.
Colours alternate: every opening is played twice, once with each colour. How a game is played and counted: `match.py`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import multiprocessing
import multiprocessing.connection
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

from alphago_zero.config import Config
from alphago_zero.errors import UserError
from alphago_zero.files import atomic_write_text
from alphago_zero.go import BLACK
from alphago_zero.interrupts import children_unharmed, let_signals_end, obey_signals
from alphago_zero.match import Match, MatchGame
from alphago_zero.players import PlayerSpec, common_rules
from alphago_zero.workers import WorkerError, available_cores


@dataclass(frozen=True)
class MatchResult:
    """The score of a match as A sees it."""

    a: str
    b: str
    wins_a: int = 0
    wins_b: int = 0
    draws: int = 0
    distinct: int = 0  # games that differ from all others
    forfeits_a: int = 0  # games that A lost by a fault: no answer, an illegal move, a crash
    forfeits_b: int = 0
    confirmed: int = 0  # games that a program counted as we do
    disputed: int = 0  # games that a program counted otherwise
    stopped_early: bool = False  # the rest could not have changed the verdict

    @property
    def games(self) -> int:
        return self.wins_a + self.wins_b + self.draws

    @property
    def score(self) -> float:
        """A's share of the points; a draw is half a point."""
        return (self.wins_a + self.draws / 2) / self.games if self.games else 0.5

    @property
    def interval(self) -> tuple:
        return wilson_interval(self.score, self.games)

    def with_game(self, game: MatchGame, distinct: int) -> MatchResult:
        forfeited = game.result[-1] in "TF"
        return dataclasses.replace(
            self,
            wins_a=self.wins_a + (game.points_a == 1),
            wins_b=self.wins_b + (game.points_a == 0),
            draws=self.draws + (game.points_a == 0.5),
            distinct=distinct,
            forfeits_a=self.forfeits_a + (forfeited and game.points_a == 0),
            forfeits_b=self.forfeits_b + (forfeited and game.points_a == 1),
            confirmed=self.confirmed + game.confirmed,
            disputed=self.disputed + bool(game.disputed),
        )

    def to_dict(self) -> dict:
        return {
            "a": self.a,
            "b": self.b,
            "games": self.games,
            "wins_a": self.wins_a,
            "wins_b": self.wins_b,
            "draws": self.draws,
            "score": round(self.score, 4),
            "interval": [round(bound, 4) for bound in self.interval],
            "distinct": self.distinct,
            "forfeits_a": self.forfeits_a,
            "forfeits_b": self.forfeits_b,
            "confirmed": self.confirmed,
            "disputed": self.disputed,
            "stopped_early": self.stopped_early,
        }

    def __str__(self) -> str:
        low, high = self.interval
        drawn = f", {self.draws} drawn" if self.draws else ""
        return (
            f"{self.a} : {self.b}  {self.wins_a} : {self.wins_b}{drawn}  "
            f"({100 * self.score:.1f} %, 95 % interval {100 * low:.1f} to {100 * high:.1f})"
        )

    def details(self) -> str:
        """What a person should know besides the score."""
        told = [f"{self.distinct} of {self.games} games differ"]
        if 2 * self.distinct < self.games:
            told[0] += ": too few, set evaluation.opening_moves higher"
        for name, forfeits in ((self.a, self.forfeits_a), (self.b, self.forfeits_b)):
            if forfeits:
                told.append(f"{name} lost {forfeits} by a fault")
        if self.confirmed or self.disputed:
            told.append(f"the program's count agreed in {self.confirmed}, differed in {self.disputed}")
        if self.stopped_early:
            told.append("stopped early: the rest could not change the verdict")
        return "; ".join(told)


def wilson_interval(share: float, games: int, z: float = 1.96) -> tuple:
    """The 95 % interval of a share seen in so many games (Wilson's score interval).

    >>> [round(bound, 3) for bound in wilson_interval(0.55, 400)]
    [0.501, 0.598]
    """
    if games == 0:
        return 0.0, 1.0
    center = (share + z * z / (2 * games)) / (1 + z * z / games)
    half = z * math.sqrt(share * (1 - share) / games + z * z / (4 * games * games)) / (1 + z * z / games)
    return max(0.0, center - half), min(1.0, center + half)


def is_decided(result: MatchResult, games: int, threshold: float) -> bool:
    """Can the games still to be played no longer change whether A scores more than `threshold`?"""
    points, left = result.wins_a + result.draws / 2, games - result.games
    return points > threshold * games or points + left <= threshold * games


# --- a match in several processes -------------------------------------------------------------------------------------


def play_models(
    a: str | Path,
    b: str | Path,
    config: Config,
    *,
    games: int,
    readouts: int,
    seed: int = 0,
    threshold: float | None = None,
    sgf_folder: Path | None = None,
    on_game: Callable[[MatchResult], None] = lambda result: None,
    play: Callable | None = None,
) -> MatchResult:
    """A match of two models with the same readouts, as the gate plays it."""
    specs = [PlayerSpec("model", Path(model).name, Path(model), readouts) for model in (a, b)]
    return play_match(
        *specs,
        config,
        games=games,
        seed=seed,
        threshold=threshold,
        sgf_folder=sgf_folder,
        on_game=lambda result, game: on_game(result),
        play=play,
    )


def play_match(
    a: PlayerSpec,
    b: PlayerSpec,
    config: Config,
    *,
    games: int,
    seed: int = 0,
    threshold: float | None = None,
    sgf_folder: Path | None = None,
    on_game: Callable[[MatchResult, MatchGame], None] = lambda result, game: None,
    play: Callable | None = None,
) -> MatchResult:
    """Play a match in one process a core; with a `threshold` it ends once the rest cannot change the verdict.

    The rules are those of the first player that is a model, else the configuration's. `play`, with the arguments of
    `play_in_processes`, has the games played elsewhere.
    """
    config = dataclasses.replace(config, game=common_rules((a, b), config))
    play = play or (_play_here if "human" in (a.kind, b.kind) else play_in_processes)
    result, played = MatchResult(a.label, b.label), set()
    with contextlib.closing(play(a, b, config, games, seed)) as finished:
        for game in finished:
            played.add(game.moves)
            result = result.with_game(game, distinct=len(played))
            if sgf_folder:
                atomic_write_text(sgf_folder / f"{game.number:04d}.sgf", game.sgf)
            if threshold is not None and result.games < games and is_decided(result, games, threshold):
                result = dataclasses.replace(result, stopped_early=True)
            on_game(result, game)
            if result.stopped_early:
                break
    return result


def match_folder(parent: Path, a: PlayerSpec, b: PlayerSpec) -> Path:
    """A folder for the games of a match that no earlier match has used."""
    a_name, b_name = (re.sub(r"[^\w.@+-]+", "_", spec.label).strip("_")[:60] for spec in (a, b))
    folder, number = parent / f"{a_name}_{b_name}", 1
    while folder.exists():
        number += 1
        folder = parent / f"{a_name}_{b_name}-{number}"
    return folder


def save_result(folder: Path, result: MatchResult, games: list[MatchGame]) -> None:
    """The score and, game by game, how it came about, beside the SGF files."""
    lines = [
        {
            "game": game.number,
            "black": result.a if game.a_color == BLACK else result.b,
            "result": game.result,
            "length": len(game.moves),
            **({"reason": game.reason} if game.reason else {}),
            **({"disputed": game.disputed} if game.disputed else {}),
        }
        for game in sorted(games, key=lambda game: game.number)
    ]
    atomic_write_text(folder / "result.json", json.dumps({**result.to_dict(), "results": lines}, indent=1) + "\n")


def _play_here(a: PlayerSpec, b: PlayerSpec, config: Config, games: int, seed: int) -> Iterator[MatchGame]:
    """One game after another in this process, which has the terminal; a person wants no opening."""
    settings = dataclasses.replace(config.evaluation, opening_moves=0, parallel_games=1)
    match = Match(a, b, dataclasses.replace(config, evaluation=settings), range(games), games, seed)
    with contextlib.closing(match):
        while not match.is_over:
            yield from match.ply()


def play_in_processes(a: PlayerSpec, b: PlayerSpec, config: Config, games: int, seed: int) -> Iterator[MatchGame]:
    context = multiprocessing.get_context("spawn")
    processes = max(1, min(config.selfplay.workers or available_cores(), (games + 1) // 2))
    workers: dict = {}  # the pipe from which a process is heard, and the process
    try:
        for numbers in shares(games, processes):
            receiver, sender = context.Pipe(duplex=False)
            arguments = (a, b, config, numbers, games, seed, sender)
            workers[receiver] = context.Process(target=_match_process, args=arguments, daemon=True)
            with children_unharmed():
                workers[receiver].start()
            sender.close()  # now the process has the only one: with it the pipe ends
        yield from _listen(workers)
    finally:
        for worker in workers.values():
            if worker.pid:
                worker.terminate()
                worker.join()


def shares(games: int, parts: int) -> list[list[int]]:
    """The numbers of a match's games in so many parts; the two games of an opening stay together."""
    pairs = np.array_split(np.arange((games + 1) // 2), parts)
    return [[n for pair in part.tolist() for n in (2 * pair, 2 * pair + 1) if n < games] for part in pairs]


def _listen(workers: dict) -> Iterator[MatchGame]:
    """What the processes send, until the last one has ended."""
    running = dict(workers)
    while running:
        for receiver in multiprocessing.connection.wait(list(running)):
            try:
                message = receiver.recv()
            except EOFError:
                worker = running.pop(receiver)
                worker.join()
                if worker.exitcode:
                    raise WorkerError(f"a match process died (exit code {worker.exitcode})") from None
                continue
            if isinstance(message, Exception):
                raise message
            yield message


def _match_process(a, b, config, numbers, games, seed, sender) -> None:
    try:
        outcome = _outcome(a, b, config, numbers, games, seed, sender)
        let_signals_end()  # nothing is left to be ended with care
    except (BrokenPipeError, KeyboardInterrupt):  # the parent was killed, or wants no more games
        sys.exit(1)
    if outcome:
        sender.send(outcome)


def _outcome(a, b, config, numbers, games, seed, sender) -> Exception | None:
    """Play and send the games; what the parent is to raise, if anything."""
    obey_signals()  # so that programs are ended, too
    try:
        _play_and_send(a, b, config, numbers, games, seed, sender)
    except BrokenPipeError:
        raise
    except UserError as error:
        return error
    except Exception as error:  # the parent reports it: nothing is swallowed
        return WorkerError(f"match: {type(error).__name__}: {error}")
    return None


def _play_and_send(a, b, config, numbers, games, seed, sender) -> None:
    parent = multiprocessing.parent_process()
    with contextlib.closing(Match(a, b, config, numbers, games, seed)) as match:
        while not match.is_over and parent.is_alive():
            for game in match.ply():
                sender.send(game)
