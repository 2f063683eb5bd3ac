"""Ray: the same loop over many computers, all parts at work at the same time (`train.py --engine ray`; docs/scale.md).

The driver is the process that runs the loop. It has the run directory, and it alone writes there. Its actors share no
files with it:
    SelfplayActor   a worker of `workers.py` in a thread: commands go in, finished games come out as bytes
    StageActor      the learner and the evaluators: stages of `engines.py` on a mirror of the files that they read
A model's bytes are put into the object store once, which brings them to a node once, whatever number of actors works
there. Nothing is lost when an actor or a node dies: games that were not written are played again, a training goes on
from the checkpoint in the run directory, a match with the games that are missing.
"""

from __future__ import annotations

import dataclasses
import getpass
import hashlib
import os
import queue
import shutil
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from absl import logging

from alphago_zero.arena import shares
from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.engines import Learning, learn, validate
from alphago_zero.errors import Failure, UserError
from alphago_zero.files import atomic_write_files
from alphago_zero.match import Match, MatchGame
from alphago_zero.mirror import (
    Mirror,
    Sent,
    drop_old_checkpoints,
    files_to_learn,
    files_to_validate,
    inference_files,
    is_alive,
    publication_order,
    publish,
)
from alphago_zero.workers import SelfplayPool, Usage, Worker, WorkerError, serve

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing phones home
warnings.filterwarnings("ignore", category=FutureWarning, module="ray")  # of what later releases of Ray will change
os.environ.setdefault("RAY_worker_niceness", "0")  # else actors give way to every other program
try:
    import ray
except ImportError:
    raise UserError("--engine ray needs Ray, which is not installed here: pip install '.[ray]'") from None

_MOST_DEATHS = 5  # of a learner or evaluator in one task
_KEPT_MODELS = 8  # on a node's disk
_LONG_POLL = 60.0  # seconds that an actor with nothing to say keeps the driver waiting


# --- on the nodes -----------------------------------------------------------------------------------------------------


def scratch_folder(run: str) -> Path:
    """A folder for this run on this node, for nobody else's eyes."""
    root = Path(tempfile.gettempdir()) / f"alphago-zero-{getpass.getuser()}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != os.getuid():
        raise UserError(f"{root} belongs to somebody else")
    folder = root / run
    folder.mkdir(exist_ok=True)
    return folder


def keep_model(run: str, label: str, files: dict) -> Path:
    """The model's prefix in this node's cache; `label` is its name and a fingerprint of its contents."""
    models = scratch_folder(run) / "models"
    folder, name = models / label, label.rpartition(".")[0]
    if not (folder / f"{name}.json").exists():
        atomic_write_files({folder / f"{name}{suffix}": data for suffix, data in files.items() if suffix != ".json"})
        atomic_write_files({folder / f"{name}.json": files[".json"]})  # last: with it, the model is there
        for old in sorted(models.iterdir(), key=lambda path: path.stat().st_mtime)[:-_KEPT_MODELS]:
            shutil.rmtree(old, ignore_errors=True)
    return folder / name


class _ThreadPipe:
    """The worker's end of what a pipe is between processes."""

    def __init__(self):
        self.commands: queue.SimpleQueue = queue.SimpleQueue()
        self.messages: queue.SimpleQueue = queue.SimpleQueue()

    def poll(self) -> bool:
        return not self.commands.empty()

    def recv(self) -> tuple:
        return self.commands.get()

    def send(self, message: tuple) -> None:
        self.messages.put(message)


@ray.remote(max_restarts=0, concurrency_groups={"hear": 1, "tell": 1})
class SelfplayActor:
    """A self-play worker in a thread, so that it need not wait for the driver; `tell` and `hear` are its pipe."""

    def __init__(self, config: Config, seed: list, run: str):
        self._run, self._pipe = run, _ThreadPipe()
        self._pipe.send(("ready", None, Usage()))
        threading.Thread(target=serve, args=(self._pipe, config, seed), daemon=True).start()

    @ray.method(concurrency_group="tell")
    def tell(self, command: str, *arguments) -> None:
        if command == "play":
            label, files, *rest = arguments
            arguments = (keep_model(self._run, label, files), *rest)
        self._pipe.commands.put((command, arguments))

    @ray.method(concurrency_group="hear")
    def hear(self, seconds: float) -> list:
        """All messages since the last call; if there are none, the next one, unless it takes longer than `seconds`."""
        return drain(self._pipe.messages, seconds)


def drain(messages: queue.SimpleQueue, seconds: float) -> list:
    """All that is in a queue; if it is empty, what comes first within so many seconds, and all that came with it."""
    taken = []
    try:
        taken.append(messages.get(timeout=seconds))
        while True:
            taken.append(messages.get_nowait())
    except queue.Empty:
        return taken


@ray.remote(max_restarts=0)
class StageActor:
    """The learner or an evaluator, with a mirror of the part of the run that it needs."""

    def __init__(self, config: Config, run: str):
        self._config, self._run, self._match = config, run, None
        mirrors = scratch_folder(run) / "mirrors"
        mirrors.mkdir(exist_ok=True)
        for left_behind in mirrors.iterdir():  # by actors that were killed
            if not is_alive(int(left_behind.name)):
                shutil.rmtree(left_behind, ignore_errors=True)
        self._mirror = Mirror(mirrors / str(os.getpid()))

    def receive(self, parcel: dict) -> None:
        self._mirror.receive(parcel)

    def run(self, stage: str, names: list, *arguments) -> tuple:
        """What the stage came to, the files that it wrote as references, and the CPU time of this process so far."""
        self._mirror.forget_but(names)
        before = self._mirror.snapshot()
        result = {"learn": learn, "validate": validate}[stage](self._mirror.paths, self._config, *arguments)
        after = self._mirror.snapshot()
        changed = [name for name, version in after.items() if before.get(name) != version]
        files = {name: ray.put((self._mirror.paths.root / name).read_bytes()) for name in publication_order(changed)}
        return result, files, time.process_time()

    def seat(self, a, b, labels: tuple, models: tuple, config: Config, numbers: list, games: int, seed: int) -> None:
        """Begin with these games of a match of two models."""
        models = [keep_model(self._run, label, ray.get(files)) for label, files in zip(labels, models)]
        a, b = (dataclasses.replace(spec, model=model) for spec, model in zip((a, b), models))
        self._match = Match(a, b, config, numbers, games, seed)

    def play_on(self) -> tuple:
        """The games of the match that ended within a second or so, and the CPU time of this process so far."""
        ended, began = [], time.monotonic()
        while not self._match.is_over and not ended and time.monotonic() - began < 1:
            ended = self._match.ply()
        return ended, time.process_time()


# --- in the driver ----------------------------------------------------------------------------------------------------


class _Models:
    """The models that actors play with, in the object store."""

    def __init__(self):
        self._kept: dict = {}  # prefix: (label, reference)

    def get(self, prefix: str | Path) -> tuple:
        """A label for the cache of the nodes, and a reference to the files."""
        key = str(prefix)
        if key not in self._kept:
            files = inference_files(Path(prefix))
            digest = hashlib.sha256(b"".join(files.values())).hexdigest()[:12]
            self._kept[key] = (f"{Path(prefix).name}.{digest}", ray.put(files))
            for old in list(self._kept)[:-4]:
                self._kept.pop(old, None)
        return self._kept[key]


class RayCrew:
    """Self-play actors, as the pool sees them."""

    def __init__(self, config: Config, run: str, models: _Models):
        settings = config.ray
        on_gpu = dataclasses.replace(config.selfplay, parallel_games=settings.gpu_parallel_games)
        actors = settings.actors or free_cpus(config)
        plain = (config, {"num_cpus": settings.actor_cpus})
        gpu = (
            dataclasses.replace(config, selfplay=on_gpu),
            {"num_cpus": settings.actor_cpus, "num_gpus": settings.gpu_share},
        )
        self._places = [plain] * actors + [gpu] * settings.gpu_actors
        self.size = len(self._places)
        self.most_deaths = 5 + 2 * self.size  # a node takes many with it
        self._run, self._models = run, models
        self._heard: queue.SimpleQueue = queue.SimpleQueue()  # (worker, messages; None if it died)

    def start(self, place: int, seed: list) -> _ActorWorker:
        config, options = self._places[place]
        actor = SelfplayActor.options(**options).remote(config, seed, self._run)
        return _ActorWorker(str(place), config.selfplay.parallel_games, actor, self._models, self._heard)

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


class _ActorWorker(Worker):
    """A self-play actor as the driver sees it."""

    def __init__(self, name: str, boards: int, actor, models: _Models, heard: queue.SimpleQueue):
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

    def __init__(self, name: str, paths: RunPaths, config: Config, run: str, options: dict, closed: threading.Event):
        self._name, self._paths, self._config, self._run = name, paths, config, run
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
            self._actor = StageActor.options(**self._options).remote(self._config, self._run)
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
        where = f"{socket.gethostname()}:{paths.root.resolve()}"
        run = hashlib.sha256(where.encode()).hexdigest()[:12]
        settings = config.ray
        learner = {"num_cpus": settings.learner_cpus, "num_gpus": settings.learner_gpus}
        evaluator = {"num_cpus": settings.evaluator_cpus, "num_gpus": settings.evaluator_gpus}
        self._models = _Models()
        self._learner = _Stage("learner", paths, config, run, learner, self._closed)
        self._evaluators = [
            _Stage(f"evaluator {number}", paths, config, run, evaluator, self._closed)
            for number in range(settings.evaluators)
        ]
        tell_places(config)
        self.pool = SelfplayPool(paths, config, RayCrew(config, run, self._models))

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


def connect(address: str | None) -> None:
    """Join the cluster at `address`; without one, start one on this computer, that listens to nobody else."""
    if address is None:
        ray.init(
            "local", include_dashboard=False, log_to_driver=False, logging_level="ERROR", _node_ip_address="127.0.0.1"
        )
        return
    if address != "auto":
        host, colon, port = address.rpartition(":")
        if not colon or "/" in host or not port.isdecimal():
            raise UserError(f"--address {address}: expected HOST:PORT (ray start --head says which), or auto")
        error = _does_not_answer(host, port)
        if error:
            raise UserError(f"--address {address}: no Ray cluster answers there ({error})")
        # Ray takes 127.0.0.1 for this computer's address in the network. A cluster that listens to nobody else is not
        # found there, but by another name of this computer.
        if host in ("127.0.0.1", "localhost") and _does_not_answer(ray.util.get_node_ip_address(), port):
            address = f"0.0.0.0:{port}"
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"--address {address}: {' '.join(str(error).split())}") from None


def _does_not_answer(host: str, port: str) -> str:
    """Why nobody can be reached there; empty if somebody can. (Ray itself would try for minutes.)"""
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        return str(error)
    return ""


def free_cpus(config: Config) -> int:
    """Places for self-play actors, beside those that the learner, the evaluators and actors on GPUs reserve."""
    settings = config.ray
    reserved = settings.learner_cpus + settings.evaluators * settings.evaluator_cpus
    reserved += settings.gpu_actors * settings.actor_cpus
    free = ray.cluster_resources().get("CPU", 0) - reserved
    return max(0 if settings.gpu_actors else 1, int(free // (settings.actor_cpus or 1)))


def tell_places(config: Config) -> None:
    """Who is to work on what."""
    settings = config.ray
    resources = ray.cluster_resources()
    actors = settings.actors or free_cpus(config)
    logging.info(
        "ray: %d nodes, %g CPUs, %g GPUs; self-play by %d actors and %d on GPUs, %d evaluators, a learner",
        sum(node["Alive"] for node in ray.nodes()),
        resources.get("CPU", 0),
        resources.get("GPU", 0),
        actors,
        settings.gpu_actors,
        settings.evaluators,
    )
    for kind, wanted in (
        (
            "CPU",
            (actors + settings.gpu_actors) * settings.actor_cpus
            + settings.learner_cpus
            + settings.evaluators * settings.evaluator_cpus,
        ),
        (
            "GPU",
            settings.gpu_actors * settings.gpu_share
            + settings.learner_gpus
            + settings.evaluators * settings.evaluator_gpus,
        ),
    ):
        if wanted > resources.get(kind, 0):
            logging.warning(
                "ray: the configuration reserves %g %ss and the cluster has %g: somebody waits for more",
                wanted,
                kind,
                resources.get(kind, 0),
            )
