"""The loop: self-play, aggregate, train, validate, evaluate, and again (paper: Figure 1; Methods, 'pipeline').

In: a run directory, in whatever state it is. Out: the same directory, one generation further. Files are the state:
every stage looks at what is there and does what is missing, so that a run killed anywhere goes on by being started
again. `Loop.generation` is the order of the stages; `LoopAtOnce` has self-play, learner and evaluator at work at the
same time. Who does the work is the engine's affair (`engines.py`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import numpy as np
import tqdm
from absl import logging

from alphago_zero.arena import play_models
from alphago_zero.config import Config, ConfigError
from alphago_zero.constants import RunPaths, game_files
from alphago_zero.engines import Learning
from alphago_zero.errors import UserError
from alphago_zero.files import atomic_write_text
from alphago_zero.model import ModelInfo, list_models, load_model_info, promote, resolve_model
from alphago_zero.preprocessing import aggregate
from alphago_zero.quantization import ensure_quantized
from alphago_zero.runlog import (
    append_line,
    generations_log,
    read_games,
    read_generations,
    resignation_threshold,
    summary,
    table,
    warnings,
)
from alphago_zero.selfplay import FinishedGame
from alphago_zero.sgf import read_sgf

_FIXED = ("game", "network")  # parts of the configuration that a run cannot change
_SHOWN_GAMES = 100  # whose means the progress bar shows
_BOARD_EVERY = 5  # generations between two boards for people


class RunError(UserError):
    """A run that cannot go on; the message says why and what to do."""


@contextlib.contextmanager
def lock_run(paths: RunPaths) -> Iterator[None]:
    """Only one loop works in a run directory. The lock goes with the process, however that ends."""
    try:
        paths.root.mkdir(parents=True, exist_ok=True)
        file = open(paths.root / "run.lock", "a+", encoding="utf-8")
    except OSError as error:
        raise RunError(f"cannot use run directory {paths.root}: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise RunError(f"run directory {paths.root} is in use by process {file.read().strip()}") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def is_running(paths: RunPaths) -> bool:
    """Does a loop hold the lock now?"""
    try:
        with open(paths.root / "run.lock", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def keep_config(paths: RunPaths, config: Config) -> None:
    """Refuse a configuration that does not fit what the run began with; keep it beside the run otherwise."""
    path = paths.root / "config.json"
    values = json.loads(json.dumps(config.to_dict()))
    if path.exists():
        try:
            begun = json.loads(path.read_text(encoding="utf-8"))
            fixed = [(part, begun.get(part, {}).items()) for part in _FIXED]
        except (ValueError, AttributeError):
            raise RunError(f"{path} is damaged: delete it, and say by --config what the run began with") from None
        for part, items in fixed:
            for key, value in items:
                if values[part].get(key) != value:
                    raise ConfigError(
                        f"{part}.{key} is {values[part].get(key)}, but the run in {paths.root} began with {value}: "
                        "that cannot change; take another --run-dir"
                    )
    atomic_write_text(path, json.dumps(values, indent=2) + "\n")


def games_wanted(paths: RunPaths, config: Config, newest: ModelInfo, games: int) -> int:
    """How many games a run that has `games` is to have before it trains again.

    They are counted from the verdict on the newest model, so that `selfplay.games` may change between two starts. (A
    model that was trained by hand has none; a run that left its games on another computer has fewer than it had.)
    """
    verdicts = {line["model"]: line.get("games", 0) for line in read_generations(paths)}
    before = verdicts.get(newest.name, config.selfplay.games * newest.version)
    return min(before, games) + config.selfplay.games


class Loop:
    """The stages of a run and their order."""

    def __init__(self, paths: RunPaths, config: Config, engine):
        self._paths, self._config, self._engine, self._pool = paths, config, engine, engine.pool
        self._figures: dict = {}  # of self-play in the generation under way
        self._figures_of: dict = {}  # of a model's training, by its name
        self._decisions = read_generations(paths)
        self._moves = 0  # played by now
        self._spent = self._spent_before()  # seconds of a generation that was stopped in its middle
        self._cpu_before = self._cpu_total() - self._spent.pop("cpu_s", 0.0)

    def run(self, generations: int | None = None, hours: float | None = None, games: int | None = None) -> None:
        """Go on until a limit is reached; without one, for ever."""
        deadline = None if hours is None else time.monotonic() + 3600 * hours
        self.initialize()
        for line in self._decisions[-1:]:
            if line["promoted"]:  # again, if a kill came between the verdict and the promotion
                promote(self._paths, line["model"])
        try:
            self._go_on(
                lambda: (
                    (generations is not None and self._newest().version >= generations)
                    or (deadline is not None and time.monotonic() >= deadline)
                    or (games is not None and self._pool.games >= games)
                )
            )
        finally:
            self._keep_spent()

    def _go_on(self, is_over: Callable[[], bool]) -> None:
        self.decide()
        while not is_over():
            self.generation()

    def generation(self) -> None:
        with self._timed("selfplay_s"):
            self.selfplay()
        with self._timed("train_s"):
            self.aggregate()
            self.train()
        self.decide()

    def _newest(self) -> ModelInfo:
        return load_model_info(list_models(self._paths)[-1])

    def _undecided(self) -> list:
        """Models on which there is no verdict yet, oldest first."""
        decided = {line["model"] for line in self._decisions}
        return [model for model in list_models(self._paths)[1:] if model.name not in decided]

    def initialize(self) -> None:
        """Random weights, the first best player."""
        if not list_models(self._paths) or not self._paths.best.is_file():  # which is written last
            from alphago_zero.network import initialize_random_model

            logging.info("random weights: %s", initialize_random_model(self._paths, self._config).name)

    def selfplay(self, total: int | None = None, stop: Callable[[], bool] = lambda: False) -> None:
        """The best player plays, until there are `selfplay.games` more games than the newest model has seen."""
        best = resolve_model("best", self._paths)
        ensure_quantized(self._paths, self._config, best)
        total = total or games_wanted(self._paths, self._config, self._newest(), self._pool.games)
        threshold, wrong = resignation_threshold(self._paths, self._config)
        games: list = []  # statistics
        start = self._mark()
        with tqdm.tqdm(
            total=total, initial=self._pool.games, desc="self-play", unit="game", disable=None, mininterval=1.0
        ) as progress:

            def on_game(game: FinishedGame) -> None:
                games.append(game.statistics)
                self._moves += game.statistics["length"]
                if progress.update():  # a second has passed, and somebody looks
                    means, rates = summary(games[-_SHOWN_GAMES:]), self._since(start)
                    shown = {"length": f"{means['length']:.0f}", "resigned": f"{100 * means['resigned']:.0f}%"}
                    progress.set_postfix({**shown, **dict(list(rates.items())[:2])}, refresh=False)

            self._pool.play(best, total, threshold, stop, on_game)
        figures = self._since(start)
        told = "" if wrong is None else f" ({100 * wrong:.1f} % of such resignations would have been wrong)"
        who = f"self-play by {best.name}: {len(games)} games in {time.monotonic() - start[0]:.0f} s"
        logging.info("%s, %s evaluations/s; resigns below %.2f%s", who, figures["evals_per_s"], threshold, told)
        self._figures.update(figures, resign_threshold=threshold, resign_false_positives=wrong)

    def _mark(self) -> tuple:
        """A moment: time, moves played by then, and what they cost."""
        return time.monotonic(), self._moves, self._pool.usage

    def _since(self, mark: tuple) -> dict:
        """What self-play has made and cost since that moment."""
        now, moves, usage = self._mark()
        seconds, cost = max(now - mark[0], 1e-9), usage - mark[2]
        return {
            "moves_per_s": round((moves - mark[1]) / seconds, 1),
            "evals_per_s": round(cost.evaluations / seconds),
            "evaluations": cost.evaluations,
            "reused": cost.reused,
        }

    def aggregate(self, most_games: int | None = None) -> None:
        """New games into shuffled chunks."""
        rng = np.random.default_rng([self._config.seed, self._newest().version])
        taken = aggregate(self._paths, self._config, rng, most_games)
        logging.info("aggregate: %d games, %d positions", taken.games, taken.positions)

    def train(self) -> Learning:
        """The latest weights learn, and become a model."""
        learning = self._engine.learn()
        logging.info("train: %s at step %d, %s", learning.model, learning.step, _told(learning.losses))
        self._figures_of[learning.model] = {"training": learning.losses}
        return learning

    def decide(self) -> None:
        """Validate the newest model, and let it play the best one for its place, unless that was done."""
        for model in self._undecided():
            self._decide(model)

    def _decide(self, newest: Path) -> None:
        began = time.monotonic()
        figures = {**self._figures_of.pop(newest.name, {}), **self.validate(newest), **self._gate(newest)}
        games = read_games(self._paths)[-self._config.selfplay.games :]
        info = load_model_info(newest)
        line = {
            "model": newest.name,
            "time": round(time.time()),
            "games": self._pool.games,
            "positions": info.positions,
            "steps": info.steps,
            "cpu_s": self._cpu_seconds(),
            **self._selfplay_figures(round(time.monotonic() - began, 1)),
            **figures,
            **summary(games),
        }
        append_line(generations_log(self._paths), line)
        self._decisions.append(line)
        self._spent = {}
        self._report()
        if line["promoted"]:
            promote(self._paths, newest.name)

    def _selfplay_figures(self, evaluate_s: float) -> dict:
        """Of the generation that ends, with the seconds of its stages."""
        figures, self._figures = {**self._spent, **self._figures}, {}
        return {**figures, "evaluate_s": evaluate_s}

    @contextlib.contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.monotonic() - self._spent.pop(stage, 0.0)
        try:
            yield
        finally:
            self._figures[stage] = round(time.monotonic() - began, 1)
            self._keep_spent()

    def _cpu_total(self) -> float:
        """Of this process, of what it waited for, and of the engine's workers."""
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system + self._engine.cpu_seconds

    def _cpu_seconds(self) -> float:
        """Since the last call."""
        before, self._cpu_before = self._cpu_before, self._cpu_total()
        return round(self._cpu_before - before, 1)

    def _keep_spent(self) -> None:
        """What the generation under way has cost, for whoever goes on with it."""
        seconds = {stage: self._figures[stage] for stage in ("selfplay_s", "train_s") if stage in self._figures}
        spent = {**self._spent, **seconds, "cpu_s": round(self._cpu_total() - self._cpu_before, 1)}
        atomic_write_text(self._paths.spent, json.dumps({"after": self._last_decided(), **spent}) + "\n")

    def _spent_before(self) -> dict:
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):  # none, or damaged
            spent = json.loads(self._paths.spent.read_text(encoding="utf-8"))
            if spent.pop("after", None) == self._last_decided():
                return {stage: float(seconds) for stage, seconds in spent.items()}
        return {}

    def _last_decided(self) -> str:
        return self._decisions[-1]["model"] if self._decisions else ""

    def validate(self, newest: Path) -> dict:
        """A new model and the best one on the hold-out of the last five models."""
        best = resolve_model("best", self._paths)
        figures = self._engine.validate(newest, best)
        for key, model in (("validation", newest), ("validation_best", best)):
            if key in figures:
                logging.info("validate: %s: %s", model.name, _told(figures[key]))
        return figures

    def _gate(self, newest: Path) -> dict:
        """Does it win often enough against the best one?"""
        settings = self._config.evaluation
        if not settings.gate:
            return {"promoted": True}
        ensure_quantized(self._paths, self._config, newest)  # if it was published, and then came a kill
        best = resolve_model("best", self._paths)
        with tqdm.tqdm(total=settings.games, desc="evaluate", unit="game", disable=None) as progress:
            result = play_models(
                newest,
                best,
                self._config,
                games=settings.games,
                readouts=settings.readouts,
                seed=load_model_info(newest).version,
                threshold=settings.threshold if settings.early_stop else None,
                sgf_folder=self._paths.data / "sgf" / "evaluate" / f"{newest.name}_{best.name}",
                on_game=lambda result: progress.update(),
                play=self._engine.play_games,
            )
        points = result.wins_a + result.draws / 2
        promoted = points > settings.threshold * settings.games
        logging.info("evaluate: %s: %s", result, "the new best player" if promoted else "the best player stays")
        return {"match": result.to_dict(), "promoted": promoted}

    def _report(self) -> None:
        """What a person wants to see after a generation."""
        for warning in warnings(self._decisions[-1]):
            logging.warning("Beware: %s", warning)
        logging.info("the newest generations:\n%s", table(self._decisions))
        if len(self._decisions) % _BOARD_EVERY == 1:
            newest = max(self._paths.data.glob("sgf/[0-9]*/clean/*.sgf"), key=lambda path: path.name, default=None)
            if newest:
                *_, final = read_sgf(newest).states()
                logging.info("game %s ended so:\n%r", newest.stem, final)


class LoopAtOnce(Loop):
    """Self-play, learner and evaluator at the same time, as in the paper: a thread each, that waits for its engine.

    A model is due with every `selfplay.games` games, as when they take turns, and learns from these games, not from
    what was played meanwhile: so `training.reuse` holds, whichever side is faster. Whoever is ahead waits: the learner
    for its games; self-play when it is `ray.ahead` generations of games ahead of the newest model; the learner, again,
    when two models wait for the evaluator.
    """

    def __init__(self, paths: RunPaths, config: Config, engine):
        super().__init__(paths, config, engine)
        self._changes = 0  # models made or promoted: then self-play looks up what it is to do
        self._learned, self._stopped = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._generation_began = self._mark()
        self._seen = 0  # of the run's games by the newest model, those held out included

    def _go_on(self, is_over: Callable[[], bool]) -> None:
        if self._newest().version > 0:
            self._seen = min(self._pool.games, self._newest().games + self._held_out())
        stages = (self._play_on, lambda: self._learn_on(is_over), self._decide_on)
        threads = [threading.Thread(target=self._guarded, args=(stage,), daemon=True) for stage in stages]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads) and not self._stopped.wait(0.1):
                pass
        finally:  # also on Ctrl-C
            self._stopped.set()
            threads[0].join(timeout=10)  # which uses the pool
            self._engine.close()  # the others wait for it
            for thread in threads:
                thread.join(timeout=10)
        if self._failure:
            raise self._failure

    def _guarded(self, stage: Callable[[], None]) -> None:
        try:
            stage()
        except BaseException as error:  # the main thread raises the first one
            if not self._stopped.is_set():
                self._failure = error
            self._stopped.set()

    def _play_on(self) -> None:
        settings = self._config
        while not self._is_ending:
            changes = self._changes
            limit = int(self._due() + settings.ray.ahead * settings.selfplay.games)
            if self._pool.games < limit:
                self.selfplay(limit, stop=lambda then=changes: self._changes != then or self._is_ending)
            else:
                self._pool.play("", limit, 0.0)  # so that the workers wait
                self._stopped.wait(0.1)

    def _due(self) -> int:
        """The run's games at which the next model is due."""
        return self._seen + self._config.selfplay.games

    def _held_out(self) -> int:
        return len(game_files(self._paths.holdout("")))

    @property
    def _is_ending(self) -> bool:
        return self._learned.is_set() or self._stopped.is_set()

    def _learn_on(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            due = self._due()
            while self._pool.games < due or len(self._undecided()) > 1:
                if self._stopped.wait(0.1):
                    return
            began = time.monotonic()
            self.aggregate(most_games=due - self._held_out())
            model = self.train().model
            self._seen = due
            self._figures_of[model]["learner_s"] = round(time.monotonic() - began, 1)
            self._changes += 1
        self._learned.set()

    def _decide_on(self) -> None:
        while not self._stopped.is_set():
            was_last = self._learned.is_set()
            best = resolve_model("best", self._paths)
            self.decide()
            self._changes += resolve_model("best", self._paths) != best
            if was_last:
                return
            self._stopped.wait(0.1)

    def _selfplay_figures(self, evaluate_s: float) -> dict:
        """Since the verdict before. Self-play is always at work, so that its seconds are all that passed."""
        began, self._generation_began = self._generation_began, self._mark()
        return {
            **self._figures,
            **self._since(began),
            "selfplay_s": round(self._generation_began[0] - began[0], 1),
            "evaluator_s": evaluate_s,
        }


def _told(figures: dict) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in figures.items() if name not in ("global_step", "step"))
