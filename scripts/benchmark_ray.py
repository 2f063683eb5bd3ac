"""Many machines, on one: the Ray engine against the local one, and the driver against 1,000 simulated actors.

benchmark.py ray            self-play of both engines in turns, 1 and 2 one-core actors: evaluations/s and their ratio
benchmark.py actors         the real loop, pool, writer and gate with simulated actors, learner and evaluator
benchmark.py actors --ray   the same with Ray between them: processes of Ray that are many actors each
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import os
import random
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from absl import logging

from alphago_zero.config import Config, load_config
from alphago_zero.constants import RunPaths
from alphago_zero.engines import Learning
from alphago_zero.go import BLACK
from alphago_zero.loop import LoopAtOnce
from alphago_zero.match import MatchGame
from alphago_zero.model import (
    ModelInfo,
    list_models,
    load_model_info,
    model_file,
    model_name,
    promote,
    save_model_info,
)
from alphago_zero.preprocessing import read_ledger
from alphago_zero.runlog import read_generations
from alphago_zero.selfplay import FinishedGame, SelfplayWorker
from alphago_zero.workers import SelfplayPool, Usage, Worker, finished_games

_ROUNDS = 3  # of the two engines, in turns
_MODEL_BYTES = 640_000  # of a network of 32 filters and 4 blocks, with its 8-bit form


# --- simulated actors -------------------------------------------------------------------------------------------------


class _Ignorant:
    """A network that answers at once: all moves are equally good."""

    def __init__(self, info: ModelInfo):
        self.model = info

    def evaluate(self, planes: np.ndarray) -> tuple:
        moves = planes.shape[1] * planes.shape[2] + 1
        return np.full((len(planes), moves), 1 / moves, np.float32), np.zeros(len(planes), np.float32)


def sample_games(config: Config, count: int = 16) -> list:
    """Whole games of random play, that nobody ends early: about the size that games have."""
    selfplay = dataclasses.replace(config.selfplay, no_pass_before=3 * config.game.points // 4)
    cheap = dataclasses.replace(config.search, readouts=4)
    worker = SelfplayWorker(dataclasses.replace(config, search=cheap, selfplay=selfplay), np.random.default_rng(0))
    worker.take(_Ignorant(make_model_info(config, 0)), -1.0)
    worker.assign(range(count))
    games = []
    while not worker.is_idle:
        games += worker.step()
    return games


def as_game(sample: FinishedGame, number: int, model: str) -> FinishedGame:
    return dataclasses.replace(
        sample,
        number=number,
        model=model,
        holdout=number % 20 == 0,
        statistics={**sample.statistics, "game": number, "model": model},
    )


class SimulatedWorker(Worker):
    """Ends games one by one, at the rate that it is told, without playing them."""

    def __init__(self, crew: SimulatedCrew, name: str):
        super().__init__(name, crew.boards, is_ready=False)
        self._crew, self._numbers, self.model = crew, [], ""
        self.is_stopped, self.obituary, self._turn = False, "killed", 0
        crew.at(0.0, self, ("ready", None, Usage()))

    def _send(self, command: str, *arguments) -> None:
        if command == "assign":
            self._numbers.extend(arguments[0])
        elif command == "play":
            self.model = Path(arguments[0]).name
            self._turn += 1  # what was under way at another rate or with another model is void
            self._crew.at(self._crew.seconds(), self, self._turn)
        else:
            self._turn += 1
            self._crew.at(0.0, self, ("paused", None, self.usage))

    def finish(self, turn: int) -> FinishedGame | None:
        if turn != self._turn or not self._numbers:
            return None
        self._crew.at(self._crew.seconds(), self, turn)
        return as_game(random.choice(self._crew.samples), self._numbers.pop(0), self.model)

    def stop(self) -> None:
        self.is_stopped = True


class SimulatedCrew:
    """`size` actors that end `rate` games a second each, or die instead of ending one with the chance `death`."""

    most_deaths = 1000

    def __init__(self, size: int, rate: float, samples: list, boards: int = 8, death: float = 0.0):
        self.size, self.rate, self.samples, self.boards, self._death = size, rate, samples, boards, death
        self._events: list = []
        self._order = itertools.count()
        self._random = random.Random(0)

    def seconds(self) -> float:
        return self._random.expovariate(self.rate)

    def at(self, delay: float, worker: SimulatedWorker, what) -> None:
        heapq.heappush(self._events, (time.monotonic() + delay, next(self._order), worker, what))

    def start(self, place: int, seed: list) -> SimulatedWorker:
        return SimulatedWorker(self, str(place))

    def hear(self, workers: list, timeout: float):
        ends = time.monotonic() + timeout
        if self._events and self._events[0][0] > time.monotonic():
            time.sleep(max(0.0, min(self._events[0][0], ends) - time.monotonic()))
        now = time.monotonic()
        while self._events and self._events[0][0] <= now:
            _, _, worker, what = heapq.heappop(self._events)
            if worker.is_stopped:
                continue
            if isinstance(what, tuple):
                yield worker, what
            elif self._random.random() < self._death:
                yield worker, None
            else:
                game = worker.finish(what)
                if game:
                    yield worker, ("game", game, worker.usage)


# --- a simulated learner and evaluator --------------------------------------------------------------------------------


def make_model_info(config: Config, version: int, **figures) -> ModelInfo:
    return ModelInfo(model_name(version), version, config.game, config.network, graph_digest="", **figures)


class SimulatedEngine:
    """The real pool and writer; a learner that takes `learn_seconds`; an evaluator whose every other match is won."""

    at_once = True
    cpu_seconds = 0.0

    def __init__(self, paths: RunPaths, config: Config, crew, learn_seconds: float = 0.0):
        self._paths, self._config, self._learn_seconds = paths, config, learn_seconds
        if not list_models(paths):
            first = make_model_info(config, 0)
            self._publish(first)
            promote(paths, first.name)
        self.pool = SelfplayPool(paths, config, crew)

    def learn(self) -> Learning:
        from alphago_zero.network import next_target_step

        time.sleep(self._learn_seconds)
        ledger = read_ledger(self._paths)
        parent = load_model_info(list_models(self._paths)[-1])
        info = make_model_info(
            self._config,
            parent.version + 1,
            parent=parent.name,
            steps=next_target_step(self._paths, self._config),
            games=sum(len(chunk.games) for chunk in ledger),
            positions=sum(chunk.positions for chunk in ledger),
        )
        self._publish(info)
        return Learning(info.name, info.steps)

    def _publish(self, info: ModelInfo) -> None:
        prefix = self._paths.models / info.name
        self._paths.models.mkdir(parents=True, exist_ok=True)
        model_file(prefix, ".pb").write_bytes(bytes(_MODEL_BYTES))
        save_model_info(prefix, info)

    def validate(self, newest: Path, best: Path) -> dict:
        return {}

    def play_games(self, a, b, config: Config, games: int, seed: int):
        for number in range(games):
            won = load_model_info(a.model).version % 2 == 0
            winner = BLACK if won == (number % 2 == 0) else 3 - BLACK
            yield MatchGame(number, winner, "B+1.5" if winner == BLACK else "W+1.5", "", False, "", (number,), "(;)")

    def close(self) -> None:
        self.pool.close()


def simulate(actors: int, rate: float, generations: int, games: int, through_ray: bool, hosts: int) -> dict:
    """A run of so many generations; what the driver wrote a second, and the CPU time that a game cost it."""
    overrides = [
        f"selfplay.games={games}",
        "inference.precision=f32",
        "evaluation.games=400",
        "selfplay.parallel_games=8",
    ]
    config = load_config(None, overrides)
    samples = sample_games(config)
    game_bytes = np.mean([len(game.record) + len(game.sgf_clean) + len(game.sgf_full) for game in samples])
    with tempfile.TemporaryDirectory() as folder:
        paths = RunPaths(folder)
        crew = _ray_crew(actors, rate, samples, hosts) if through_ray else SimulatedCrew(actors, rate, samples)
        engine = SimulatedEngine(paths, config, crew)
        import alphago_zero.network  # noqa: F401  (what is measured is the driver's own work)

        logging.set_verbosity(logging.ERROR)

        began, cpu_began = time.monotonic(), time.process_time()
        LoopAtOnce(paths, config, engine).run(generations=generations)
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu_began
        written, models = len(finished_games(paths)), list_models(paths)
        if through_ray:
            import ray

            ray.shutdown()
        return {
            "actors": actors,
            "transport": "ray" if through_ray else "none",
            "offered_games_per_s": round(actors * rate, 1),
            "written_games_per_s": round(written / seconds, 1),
            "game_kb": round(game_bytes / 1e3, 1),
            "game_length": round(float(np.mean([game.statistics["length"] for game in samples]))),
            "written_mb_per_s": round(written * game_bytes / seconds / 1e6, 2),
            "driver_cpu_ms_per_game": round(1e3 * cpu / written, 3),
            "driver_share_of_a_core": round(cpu / seconds, 3),
            "games": written,
            "models": len(models),
            "promoted": sum(line["promoted"] for line in read_generations(paths)),
            "seconds": round(seconds, 1),
            "load": round(os.getloadavg()[0], 1),
        }


def _ray_crew(actors: int, rate: float, samples: list, hosts: int):
    """A crew whose messages all go through Ray, as between computers; a process of Ray is many of its actors."""
    import ray

    from alphago_zero.ray_actors import ThreadPipe, drain
    from alphago_zero.ray_cluster import connect
    from alphago_zero.ray_engine import ActorWorker, Models, RayCrew

    scripts = Path(__file__).resolve().parent
    os.environ["PYTHONPATH"] = os.pathsep.join([str(scripts), str(scripts.parent), os.environ.get("PYTHONPATH", "")])
    connect(None)

    @ray.remote(num_cpus=0, max_restarts=0, concurrency_groups={"hear": -(-actors // hosts), "tell": 1})
    class Host:
        def __init__(self, size: int):
            self._pipes = [ThreadPipe() for _ in range(size)]
            for pipe in self._pipes:
                threading.Thread(target=play_nothing, args=(pipe, rate, samples), daemon=True).start()

        @ray.method(concurrency_group="tell")
        def tell(self, index: int, command: str, *arguments) -> None:
            self._pipes[index].commands.put((command, arguments))

        @ray.method(concurrency_group="hear")
        def hear(self, index: int, seconds: float) -> list:
            return drain(self._pipes[index].messages, seconds)

    class Method:
        """A method of an actor that is one of those in a host."""

        def __init__(self, method, index: int):
            self._method, self._index = method, index

        def remote(self, *arguments):
            return self._method.remote(self._index, *arguments)

    class Handle:
        def __init__(self, host, index: int):
            self.tell, self.hear = Method(host.tell, index), Method(host.hear, index)

    class HostedWorker(ActorWorker):
        def stop(self) -> None:
            self.is_stopped = True

    class HostedCrew(RayCrew):
        def __init__(self):
            super().__init__(Config(), actors, Models())
            self._hosts = [Host.remote(-(-actors // hosts)) for _ in range(hosts)]

        def start(self, place: int, seed: list) -> HostedWorker:
            handle = Handle(self._hosts[place % hosts], place // hosts)
            return HostedWorker(str(place), 8, handle, self._models, self._heard)

    return HostedCrew()


def play_nothing(pipe, rate: float, samples: list) -> None:
    """What `workers.serve` does, without playing: `rate` games a second come out of the samples."""
    numbers, model, luck = [], "", random.Random()
    pipe.send(("ready", None, Usage()))
    while True:
        while not model or not numbers or pipe.poll():
            command, arguments = pipe.recv()
            if command == "assign":
                numbers.extend(arguments[0])
            elif command == "play":
                model = arguments[0].rpartition(".")[0]  # its label
            elif model:
                model = ""
                pipe.send(("paused", None, Usage()))
        time.sleep(luck.expovariate(rate))
        pipe.send(("game", as_game(luck.choice(samples), numbers.pop(0), model), Usage()))


# --- both engines -----------------------------------------------------------------------------------------------------


def compare(config_file: str | None, overrides: list, model: str | None, seconds: float, actors: list) -> list:
    """Self-play by so many one-core workers, of the local engine and of Ray's, in turns: evaluations/s of both."""
    import ray
    from benchmark_selfplay import random_model

    from alphago_zero.ray_cluster import connect
    from alphago_zero.ray_engine import Models, RayCrew

    rows = []
    connect(None)
    with tempfile.TemporaryDirectory() as folder:
        prefix = model or random_model(load_config(config_file, overrides), Path(folder) / "model")
        for count in actors:
            config = load_config(config_file, [*overrides, f"selfplay.workers={count}", "ray.actor_cpus=0.01"])
            pools = {
                "local": SelfplayPool(RunPaths(Path(folder) / f"local{count}"), config),
                "ray": SelfplayPool(
                    RunPaths(Path(folder) / f"ray{count}"),
                    config,
                    RayCrew(config, count, Models()),
                ),
            }
            spent = {name: [0, 0.0, 0.0] for name in pools}  # evaluations, seconds, CPU seconds
            for turn in range(_ROUNDS + 1):
                for name, pool in pools.items():
                    before, began = pool.usage, time.monotonic()
                    ends = began + seconds / _ROUNDS
                    pool.play(prefix, 10**9, -1.0, stop=lambda ends=ends: time.monotonic() >= ends)
                    pool._pause(None)
                    cost = pool.usage - before
                    if turn:  # the first one is for compilers and for games at different moves
                        figures = (cost.evaluations, time.monotonic() - began, cost.cpu_seconds)
                        spent[name] = [a + b for a, b in zip(spent[name], figures)]
            for pool in pools.values():
                pool.close()
            rates = {name: evaluations / wall for name, (evaluations, wall, _) in spent.items()}
            by_cpu = {name: evaluations / cpu for name, (evaluations, _, cpu) in spent.items()}
            rows.append(
                {
                    "actors": count,
                    "local_evals_per_s": round(rates["local"]),
                    "ray_evals_per_s": round(rates["ray"]),
                    "ratio": round(rates["ray"] / rates["local"], 3),
                    "local_evals_per_cpu_s": round(by_cpu["local"]),
                    "ray_evals_per_cpu_s": round(by_cpu["ray"]),
                    "ratio_by_cpu": round(by_cpu["ray"] / by_cpu["local"], 3),
                }
            )
    ray.shutdown()
    return rows
