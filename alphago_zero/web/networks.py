"""The networks of the page: models loaded when somebody asks for them, and one batch for all boards.

In: leaves of many searches, each in a thread of its own. Out: their p and v. One thread evaluates: while it works,
leaves of other boards gather, and the next batch takes all of them. So many boards cost little more than one, and the
page never uses more than one core for the network, whoever trains beside it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from pathlib import Path

import numpy as np

from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.errors import UserError
from alphago_zero.inference import load_evaluator
from alphago_zero.model import ModelError, ModelInfo, list_models, load_model_info, model_file, resolve_model
from alphago_zero.web.limits import Refusal

BATCHES = (8, 16, 32)  # compiled sizes: one board's leaves, and those of many


class SharedNetwork:
    """An evaluator that any thread may use; its leaves travel with those of others."""

    batch_size = BATCHES[-1]

    def __init__(self, prefix: Path, config: Config, submit):
        self._prefix, self._config, self._submit = prefix, config, submit
        self._evaluators: dict = {}  # batch size: Evaluator
        self.model: ModelInfo = self._evaluator(BATCHES[0]).model

    def evaluate(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """uint8 [B, N, N, 17] -> p [B, N * N + 1], v [B]. Waits for its turn."""
        most = self.batch_size
        waiting = [self._submit(self, planes[k : k + most]) for k in range(0, len(planes), most)]
        answers = [future.result() for future in waiting]
        return tuple(np.concatenate(parts) for parts in zip(*answers)) if len(answers) > 1 else answers[0]

    def evaluate_now(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For the evaluating thread alone."""
        return self._evaluator(next(size for size in BATCHES if len(planes) <= size)).evaluate(planes)

    def _evaluator(self, size: int):
        if size not in self._evaluators:
            inference = self._config.inference
            self._evaluators[size] = load_evaluator(
                self._prefix, size, backend=inference.backend, precision=inference.precision
            )
        return self._evaluators[size]


class Stopped(Exception):
    """Nobody wants to know any more."""


class Leash:
    """An evaluator for a long calculation, with which it can be stopped: it gets `Stopped` for its next leaves."""

    def __init__(self, network: SharedNetwork):
        self._network = network
        self.model, self.batch_size = network.model, network.batch_size
        self.is_cut = False

    def evaluate(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.is_cut:
            raise Stopped
        return self._network.evaluate(planes)


class Networks:
    """All models that the page may use, by name."""

    def __init__(self, paths: RunPaths, config: Config, most: int, model: str | None = None):
        self._paths, self._config, self._most = paths, config, most
        self._given = resolve_model(model, paths) if model else None  # a wrong name is told before anything starts
        self._loaded: OrderedDict = OrderedDict()  # name: SharedNetwork, the last used one last
        self._infos: dict = {}  # prefix: (when it was written, ModelInfo)
        self._lock = threading.Lock()
        self._waiting: deque = deque()  # (network, planes, future)
        self._arrived = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="networks", daemon=True)
        self._thread.start()

    def prefixes(self) -> dict:
        """Name: prefix of every model there is: the run's, the one given, the shipped one."""
        found = {prefix.name: prefix for prefix in list_models(self._paths)}
        for word in ("shipped", self._given):
            try:
                prefix = word and resolve_model(word, self._paths)
            except ModelError:
                continue
            if prefix:
                found.setdefault(prefix.name, prefix)
        return found

    def default(self) -> str | None:
        """The name of the model to play: the one given, else the run's best, else the shipped one."""
        for word in (self._given, "best", "latest", "shipped"):
            try:
                if word:
                    return resolve_model(word, self._paths).name
            except ModelError:
                continue
        return None

    def describe(self) -> list:
        """What a person chooses from, newest first."""
        described = []
        for name, prefix in self.prefixes().items():
            try:
                info = self.info(name, prefix)
            except UserError:
                continue  # being written, or damaged: it cannot be chosen
            described.append(
                {
                    "name": name,
                    "version": info.version,
                    "size": info.rules.board_size,
                    "komi": info.rules.komi,
                    "games": info.games,
                }
            )
        return sorted(described, key=lambda model: -model["version"])

    def info(self, name: str, prefix: Path | None = None) -> ModelInfo:
        """What stands beside a model; read once, and again if a new run gave the name to another one."""
        prefix = prefix or self._prefix(name)
        try:
            written = model_file(prefix, ".json").stat().st_mtime_ns
        except OSError:
            raise Refusal("There is no model of that name.") from None
        if self._infos.get(prefix, (None,))[0] != written:
            self._infos[prefix] = (written, load_model_info(prefix))
        return self._infos[prefix][1]

    def _prefix(self, name: str) -> Path:
        prefix = self.prefixes().get(name)
        if prefix is None:
            raise Refusal("There is no model of that name.")
        return prefix

    def get(self, name: str | None) -> SharedNetwork:
        """Load a model, or find it loaded. Takes a moment: not for the event loop."""
        name = name or self.default()
        if name is None:
            raise Refusal(
                f"There is no model in {self._paths.root.resolve()} yet: scripts/train, started there, makes one; "
                "or name one: controller.py serve MODEL."
            )
        info = self.info(name)
        with self._lock:
            network = self._loaded.pop(name, None)
            if network is None or network.model != info:
                network = SharedNetwork(self._prefix(name), self._config, self._submit)
            self._loaded[name] = network
            while len(self._loaded) > self._most:
                self._loaded.popitem(last=False)
        return network

    def close(self) -> None:
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        self._thread.join()

    def _submit(self, network: SharedNetwork, planes: np.ndarray) -> Future:
        future: Future = Future()
        with self._arrived:
            if self._closed:
                raise Refusal("The server is closing.")
            self._waiting.append((network, planes, future))
            self._arrived.notify()
        return future

    def _serve(self) -> None:
        while True:
            with self._arrived:
                while not self._waiting and not self._closed:
                    self._arrived.wait()
                if self._closed:
                    break
                network, requests = self._next_batch()
            try:
                p, v = network.evaluate_now(np.concatenate([planes for planes, _ in requests]))
            except Exception as error:  # whoever waits is told; the thread serves on
                for _, future in requests:
                    future.set_exception(error)
                continue
            start = 0
            for planes, future in requests:
                end = start + len(planes)
                future.set_result((p[start:end], v[start:end]))
                start = end
        for _, _, future in self._waiting:
            future.set_exception(Refusal("The server is closing."))

    def _next_batch(self) -> tuple:
        """The network whose turn it is, and as many of its requests as go into one batch."""
        network, rows = self._waiting[0][0], 0
        taken, left = [], deque()
        for request in self._waiting:
            if request[0] is network and rows + len(request[1]) <= network.batch_size:
                taken.append(request[1:])
                rows += len(request[1])
            else:
                left.append(request)
        self._waiting = left
        return network, taken
