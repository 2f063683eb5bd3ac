"""Who does the work of a run: this computer's processes, or actors on many computers (`ray_engine.py`).

`loop.py` looks at the files and says what is due. An engine has it done, and leaves the same files:
    pool        the self-play workers, whose games one writer takes in
    learn       from the ledger's window to a published model
    validate    losses on the games kept out of training
    play_games  the games of a match
The functions below are these stages themselves, on a run directory or on a copy of the part of it that they read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from absl import logging

from alphago_zero.arena import play_in_processes
from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.errors import UserError
from alphago_zero.model import list_models, load_model_info
from alphago_zero.quantization import ensure_quantized
from alphago_zero.workers import SelfplayPool


@dataclass(frozen=True)
class Learning:
    """What one call of `learn` came to."""

    model: str
    step: int
    losses: dict = field(default_factory=dict)
    seconds: float = 0.0


def learn(paths: RunPaths, config: Config) -> Learning:
    """Go on from the latest weights, whether the gate took them or not, and publish a model."""
    from alphago_zero import network

    started = time.monotonic()
    target = network.next_target_step(paths, config)
    if target == load_model_info(list_models(paths)[-1]).steps:
        raise UserError("no new position to learn from: raise selfplay.games, or lower selfplay.holdout")
    training = network.train(paths, config, target)
    model = network.export_latest_checkpoint_model(paths, config)
    ensure_quantized(paths, config, model)
    losses = {name: round(value, 4) for name, value in training.figures.items()}
    return Learning(model.name, target, losses, time.monotonic() - started)


def validate(paths: RunPaths, config: Config, newest: str, best: str) -> dict:
    """The newest and the best model on the hold-out of the last five models that played."""
    from alphago_zero import network
    from alphago_zero.records import RecordError

    figures = {}
    for key, name, model in (("validation", "holdout", newest), ("validation_best", "holdout_best", best)):
        try:
            losses = network.validate(paths, config, paths.models / model, name=name)
        except RecordError as error:
            logging.info("validate: %s", error)
            break
        figures[key] = {key: round(value, 4) for key, value in losses.items()}
    return figures


def open_engine(name: str, paths: RunPaths, config: Config, address: str | None):
    """The engine `local` or `ray`, the latter of the cluster at `address`."""
    if name == "local":
        if address:
            raise UserError(f"--address {address} is for --engine ray")
        return LocalEngine(paths, config)
    try:
        from alphago_zero.ray_engine import RayEngine  # only here: nobody else needs Ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise UserError("--engine ray needs Ray, which is not installed here: pip install '.[ray]'") from None
    return RayEngine(paths, config, address)


class LocalEngine:
    """Processes of this computer; the stages take turns."""

    at_once = False

    def __init__(self, paths: RunPaths, config: Config):
        self._paths, self._config = paths, config
        self.pool = SelfplayPool(paths, config)
        self.play_games = play_in_processes

    @property
    def cpu_seconds(self) -> float:
        """Of workers that this process is not the parent of, or has not waited for."""
        return self.pool.usage.cpu_seconds

    def learn(self) -> Learning:
        return learn(self._paths, self._config)

    def validate(self, newest: Path, best: Path) -> dict:
        return validate(self._paths, self._config, newest.name, best.name)

    def close(self) -> None:
        self.pool.close()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()
