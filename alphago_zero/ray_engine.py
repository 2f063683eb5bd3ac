"""Ray: the same loop over many computers, all parts at work at the same time (`train.py --engine ray`; docs/scale.md).

The driver is the process that runs the loop. It has the run directory, and it alone writes there. Here is what it sees
of the actors (`ray_actors.py`): those of self-play as workers of the pool, learner and evaluators as stages whose files
it publishes. A model's bytes are put into the object store once, which brings them to a node once, whatever number of
actors works there. Nothing is lost when an actor or a node dies: games that were not written are played again, a
training goes on from the checkpoint in the run directory, a match with the games that are missing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import ray
from absl import logging

from alphago_zero.arena import shares
from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.engines import Learning
from alphago_zero.errors import Failure
from alphago_zero.match import MatchGame
from alphago_zero.mirror import Sent, drop_old_checkpoints, files_to_learn, files_to_validate, inference_files, publish
from alphago_zero.ray_actors import SelfplayActor, StageActor, drain
from alphago_zero.ray_cluster import connect, count_actors, tell_places
from alphago_zero.workers import SelfplayPool, Worker, WorkerError

_MOST_DEATHS = 5  # of a learner or evaluator in one task
_LONG_POLL = 60.0  # seconds that an actor with nothing to say keeps the driver waiting


class Models:
    """The models that actors play with, in the object store."""

    def __init__(self):
        self._kept: dict = {}  # prefix: (label, reference)

    def get(self, prefix: str | Path) -> tuple:
        """Its label in the actors' folders, and a reference to the files."""
        key = str(prefix)
        if key not in self._kept:
            files = inference_files(Path(prefix))
            digest = hashlib.sha256(b"".join(files.values())).hexdigest()[:12]
            self._kept[key] = (f"{Path(prefix).name}.{digest}", ray.put(files))
            for old in list(self._kept)[:-4]:
                self._kept.pop(old, None)
        return self._kept[key]


class RayCrew:
    """Self-play actors, as the pool sees them: so many on CPUs, and those on GPUs."""

    def __init__(self, config: Config, actors: int, models: Models):
        settings = config.ray
        on_gpu = dataclasses.replace(config.selfplay, parallel_games=settings.gpu_parallel_games)
        plain = (config, {"num_cpus": settings.actor_cpus})
        gpu = (
            dataclasses.replace(config, selfplay=on_gpu),
            {"num_cpus": settings.actor_cpus, "num_gpus": settings.gpu_share},
        )
        self._places = [plain] * actors + [gpu] * settings.gpu_actors
        self.size = len(self._places)
        self.most_deaths = 5 + 2 * self.size  # a node takes many with it
        self._models = models
        self._heard: queue.SimpleQueue = queue.SimpleQueue()  # (worker, messages; None if it died)

    def start(self, place: int, seed: list) -> ActorWorker:
        config, options = self._places[place]
        actor = SelfplayActor.options(**options).remote(config, seed)
        return ActorWorker(str(place), config.selfplay.parallel_games, actor, self._models, self._heard)

    def hear(self, workers: list, timeout: float) -> Iterator[tuple]:
        for worker, messages in drain(self._heard, timeout):
            if worker.is_stopped:
                continue
            if messages is None:
                yield worker, None
                continue
            worker.listen()
            for message in messages:
                yield worker, message


class ActorWorker(Worker):
    """A self-play actor as the driver sees it."""

    def __init__(self, name: str, boards: int, actor, models: Models, heard: queue.SimpleQueue):
        super().__init__(name, boards, is_ready=False)
        self._actor, self._models, self._heard = actor, models, heard
        self.is_stopped, self.obituary = False, ""
        self.listen()

    def listen(self) -> None:
        """Ask for its next messages; they, or word of its death, come into the crew's queue."""
        self._actor.hear.remote(_LONG_POLL).future().add_done_callback(self._hear)

    def _hear(self, answer) -> None:
        error = answer.exception()
        if error:
            self.obituary = " ".join(str(error).split())
        self._heard.put((self, None if error else answer.result()))

    def _send(self, command: str, *arguments) -> None:
        if command == "play":
            prefix, *rest = arguments
            arguments = (*self._models.get(prefix), *rest)
        self._actor.tell.remote(command, *arguments)

    def stop(self) -> None:
        self.is_stopped = True
        ray.kill(self._actor)


class _Closed(Failure):
    """The engine was closed while somebody waited for it."""


class _Stage:
    """A learner or evaluator as the driver sees it: started when it is needed, and again when it dies."""

    def __init__(self, name: str, paths: RunPaths, config: Config, options: dict, closed: threading.Event):
        self._name, self._paths, self._config = name, paths, config
        self._options, self._closed = options, closed
        self._actor = None
        self._cpu = self._past_cpu = 0.0

    @property
    def cpu_seconds(self) -> float:
        return self._past_cpu + self._cpu

    @property
    def actor(self):
        if self._closed.is_set():
            raise _Closed
        if self._actor is None:
            self._actor = StageActor.options(**self._options).remote(self._config)
            self._sent = Sent(self._paths)
        return self._actor

    def run(self, stage: str, files: list, *arguments):
        """Have a stage done and publish what it wrote."""
        return self.insist(lambda: self._run_once(stage, files, *arguments))

    def insist(self, task):
        """Do the task, with a fresh actor when the one that was at it dies."""
        for _ in range(_MOST_DEATHS):
            try:
                return task()
            except ray.exceptions.RayTaskError as error:  # the stage's own error
                if isinstance(error.cause, ray.exceptions.RayError):
                    reason = error.cause
                else:
                    raise error.cause if isinstance(error.cause, Exception) else Failure(str(error)) from None
            except ray.exceptions.RayError as error:
                reason = error
            if self._closed.is_set():
                raise _Closed
            logging.warning("the %s died and is started again", self._name)
            self.stop()
        raise WorkerError(f"the {self._name} died {_MOST_DEATHS} times in a row ({' '.join(str(reason).split())})")

    def _run_once(self, stage: str, files: list, *arguments):
        actor = self.actor
        for parcel in self._sent.parcels(files):
            self.wait_for(actor.receive.remote(parcel))
        names = [path.relative_to(self._paths.root).as_posix() for path in files]
        result, written, self._cpu = self.wait_for(actor.run.remote(stage, names, *arguments))
        for name, reference in written.items():
            publish(self._paths, name, self.wait_for(reference))
            self._sent.note(name)
        if stage == "learn":
            drop_old_checkpoints(self._paths)
        return result

    def wait_for(self, reference):
        """`ray.get`, that ends when the engine is closed."""
        while not ray.wait([reference], timeout=0.5)[0]:
            if self._closed.is_set():
                raise _Closed
        return ray.get(reference)

    def note_cpu(self, seconds: float) -> None:
        self._cpu = seconds

    def stop(self) -> None:
        self._past_cpu, self._cpu = self._past_cpu + self._cpu, 0.0
        if self._actor is not None:
            ray.kill(self._actor)
            self._actor = None


class RayEngine:
    """The actors of a run."""

    at_once = True

    def __init__(self, paths: RunPaths, config: Config, address: str | None = None):
        self._paths, self._config = paths, config
        self._closed = threading.Event()
        connect(address)
        settings = config.ray
        learner = {"num_cpus": settings.learner_cpus, "num_gpus": settings.learner_gpus}
        evaluator = {"num_cpus": settings.evaluator_cpus, "num_gpus": settings.evaluator_gpus}
        actors = count_actors(config)
        tell_places(config, actors)
        self._models = Models()
        self._learner = _Stage("learner", paths, config, learner, self._closed)
        self._evaluators = [
            _Stage(f"evaluator {number}", paths, config, evaluator, self._closed)
            for number in range(settings.evaluators)
        ]
        self.pool = SelfplayPool(paths, config, RayCrew(config, actors, self._models))

    @property
    def cpu_seconds(self) -> float:
        stages = (self._learner, *self._evaluators)
        return self.pool.usage.cpu_seconds + sum(stage.cpu_seconds for stage in stages)

    def learn(self) -> Learning:
        return self._learner.run("learn", files_to_learn(self._paths, self._config))

    def validate(self, newest: Path, best: Path) -> dict:
        files = files_to_validate(self._paths, [newest, best])
        return self._evaluators[0].run("validate", files, newest.name, best.name)

    def play_games(self, a, b, config: Config, games: int, seed: int) -> Iterator[MatchGame]:
        """The games of a match, as `arena.play_in_processes` has them played; each evaluator plays its share."""
        parts = [numbers for numbers in shares(games, len(self._evaluators)) if numbers]
        ended: queue.SimpleQueue = queue.SimpleQueue()
        over = threading.Event()
        for evaluator, numbers in zip(self._evaluators, parts):
            arguments = (evaluator, a, b, config, numbers, games, seed, ended, over)
            threading.Thread(target=self._play_part, args=arguments, daemon=True).start()
        try:
            for _ in range(games):
                game = ended.get()
                if isinstance(game, BaseException):
                    raise game
                yield game
        finally:
            over.set()

    def _play_part(self, evaluator: _Stage, a, b, config, numbers: list, games: int, seed: int, ended, over) -> None:
        """An evaluator's games into a queue; if it dies, another one begins with those that are missing."""
        missing = set(numbers)

        def task() -> None:
            labels, references = zip(*(self._models.get(spec.model) for spec in (a, b)))
            seat = (a, b, labels, references, config, sorted(missing), games, seed)
            evaluator.wait_for(evaluator.actor.seat.remote(*seat))
            while missing and not over.is_set():
                finished, seconds = evaluator.wait_for(evaluator.actor.play_on.remote())
                evaluator.note_cpu(seconds)
                for game in finished:
                    missing.discard(game.number)
                    ended.put(game)

        try:
            evaluator.insist(task)
        except BaseException as error:  # the loop raises it
            ended.put(error)

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self.pool.close()
            for stage in (self._learner, *self._evaluators):
                stage.stop()
            ray.shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()
