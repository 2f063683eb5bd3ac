"""Configuration: one frozen dataclass a part, read strictly from YAML.

In: `configs/*.yaml` and `--set part.key=value`. Out: a `Config` that is handed to every stage; nothing is global.
A file states only what differs from the defaults below: the paper's algorithm at the scale of a home computer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import hashlib
import json
import math
import reprlib
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from alphago_zero.errors import UserError
from alphago_zero.rules import Rules


class ConfigError(UserError):
    """A configuration that cannot be used; the message names the key, the file and what is allowed."""


def _one_of(*allowed: str):
    return {"allowed": allowed}


def _between(low: float, high: float):
    return {"low": low, "high": high}


def _at_least(low: float):
    return {"low": low}


@dataclass(frozen=True)
class NetworkConfig:
    """The dual-head residual network (paper: 19 or 39 blocks x 256 filters)."""

    filters: int = field(default=32, metadata=_between(1, 1024))
    blocks: int = field(default=4, metadata=_between(0, 80))
    value_hidden: int = field(default=256, metadata=_between(1, 4096))  # width of the value head's dense layer
    trunk: str = field(default="residual", metadata=_one_of("residual", "plain"))
    heads: str = field(default="dual", metadata=_one_of("dual", "separate"))
    batch_norm_momentum: float = field(default=0.99, metadata=_between(0.0, 1.0))
    batch_norm_epsilon: float = field(default=1e-5, metadata=_between(1e-9, 1.0))
    # The last layers of both heads start at zero, so that the first search is not led by noise. Beyond the paper.
    zero_heads: bool = False
    # Predict who owns each point at the end, as a third head used in training only. Beyond the paper (KataGo).
    ownership: bool = False


@dataclass(frozen=True)
class SearchConfig:
    """Monte Carlo tree search (paper: Methods, 'Search algorithm')."""

    algorithm: str = field(default="puct", metadata=_one_of("puct", "gumbel"))
    readouts: int = field(default=50, metadata=_between(1, 1_000_000))  # simulations a move in self-play
    c_puct: float = field(default=1.38, metadata=_between(0.0, 100.0))
    # Q of an action that was never visited: zero as in the paper, loss, or parent: the node's value less a reduction.
    # (With few simulations a side that is behind would, with zero, try each of its moves once and learn nothing.)
    first_visit: str = field(default="parent", metadata=_one_of("zero", "loss", "parent"))
    first_visit_reduction: float = field(default=0.2, metadata=_between(0.0, 2.0))
    noise_fraction: float = field(default=0.25, metadata=_between(0.0, 1.0))  # epsilon
    noise_alpha: float = field(default=0.0, metadata=_at_least(0.0))  # 0: 0.03 * 361 / points
    leaves: int = field(default=8, metadata=_between(1, 1024))  # leaves in flight when one game is searched
    # After a pass, the reply pass is tried before any other move (source documents).
    pass_answers_pass: bool = True
    # Gumbel search (Danihelka et al. 2022); beyond the paper.
    gumbel_actions: int = field(default=16, metadata=_between(1, 362))
    gumbel_visit: float = field(default=50.0, metadata=_at_least(0.0))
    gumbel_scale: float = field(default=0.5, metadata=_at_least(0.0))  # on q in [-1, 1]; the source's 1.0 on [0, 1]


@dataclass(frozen=True)
class SelfplayConfig:
    """How games are played against oneself (paper: Methods, 'Self-play')."""

    games: int = field(default=500, metadata=_at_least(1))  # games a generation
    workers: int = field(default=0, metadata=_at_least(0))  # processes; 0: one a core
    parallel_games: int = field(default=128, metadata=_between(1, 4096))  # games in lockstep in one worker
    temperature_moves: int = field(default=10, metadata=_at_least(0))  # tau = 1 for so many moves, then tau -> 0
    resign_threshold: float = field(default=-0.9, metadata=_between(-1.0, 1.0))  # until enough games set it
    resign_disabled: float = field(default=0.1, metadata=_between(0.0, 1.0))  # share of games played to the end
    resign_false_positives: float = field(default=0.05, metadata=_between(0.0, 1.0))  # at most so many
    holdout: float = field(default=0.05, metadata=_between(0.0, 0.9))  # share of games kept out of training
    # No pass before this move of a self-play game while another move is legal. Beyond the paper; 0: off. (Beginners
    # would find that White, ahead by komi, does best to pass at once, and learn nothing else: docs/learning.md.)
    no_pass_before: int = field(default=70, metadata=_at_least(0))
    # Playout cap randomisation (KataGo): this share of moves is searched fully and recorded, the others with
    # `fast_readouts` and no noise, unrecorded. 1: every move fully, as in the paper.
    full_search_share: float = field(default=1.0, metadata=_between(0.01, 1.0))
    fast_readouts: int = field(default=20, metadata=_at_least(1))


@dataclass(frozen=True)
class TrainingConfig:
    """Optimisation (paper: Methods, 'Optimization')."""

    batch_size: int = field(default=256, metadata=_between(1, 65536))
    # Steps a generation. 0: as many as `reuse` needs.
    steps: int = field(default=0, metadata=_at_least(0))
    reuse: float = field(default=2.0, metadata=_between(0.01, 1000.0))  # how often each new position is trained on
    # Learning rate from a step on: [[0, 0.01], [400000, 0.001], [600000, 0.0001]].
    learning_rates: tuple[tuple[int, float], ...] = ((0, 0.02), (40_000, 0.005), (120_000, 0.001))
    momentum: float = field(default=0.9, metadata=_between(0.0, 0.9999))
    l2: float = field(default=1e-4, metadata=_at_least(0.0))
    # Models are running means of the weights over about 1 / (1 - average) steps. Beyond the paper; 0: off.
    average: float = field(default=0.0, metadata=_between(0.0, 0.999999))
    value_weight: float = field(default=1.0, metadata=_at_least(0.0))
    ownership_weight: float = field(default=1.5, metadata=_at_least(0.0))  # only with network.ownership
    window_games: int = field(default=10_000, metadata=_at_least(1))  # uniform over the positions of so many games
    # At most this share of all games so far, but `window_least` always: a beginner's games are forgotten sooner.
    # Beyond the paper; 1: off.
    window_share: float = field(default=1.0, metadata=_between(0.01, 1.0))
    window_least: int = field(default=1000, metadata=_at_least(1))
    chunk_examples: int = field(default=10_000, metadata=_at_least(1))
    checkpoint_steps: int = field(default=1000, metadata=_at_least(1))
    # auto: bf16 (activations and products; the weights stay f32) where the CPU has it.
    precision: str = field(default="auto", metadata=_one_of("auto", "f32", "bf16"))


@dataclass(frozen=True)
class EvaluationConfig:
    """The evaluator (paper: 400 games, replaces the best player only above 55 %)."""

    gate: bool = True  # off: AlphaZero's way, every model becomes the best
    threshold: float = field(default=0.55, metadata=_between(0.0, 1.0))
    games: int = field(default=100, metadata=_at_least(2))
    readouts: int = field(default=50, metadata=_at_least(1))
    parallel_games: int = field(default=64, metadata=_between(1, 4096))
    opening_moves: int = field(default=8, metadata=_at_least(0))  # first moves sampled, one opening for two games
    early_stop: bool = True  # stop once the result at the threshold cannot change
    algorithm: str = field(default="puct", metadata=_one_of("puct", "gumbel"))  # of all matches, as `search.algorithm`
    programs: int = field(default=16, metadata=_between(1, 1024))  # GTP programs a process, one for each game
    timeout: float = field(default=120.0, metadata=_between(0.1, 86_400.0))  # seconds that a program has for an answer


@dataclass(frozen=True)
class InferenceConfig:
    """How a batch is evaluated."""

    backend: str = field(default="auto", metadata=_one_of("auto", "openvino", "tensorflow"))
    precision: str = field(default="auto", metadata=_one_of("auto", "f32", "bf16", "int8"))


@dataclass(frozen=True)
class RayConfig:
    """Where the parts of a run work, with `train.py --engine ray` (docs/scale.md)."""

    actors: int = field(default=0, metadata=_at_least(0))  # of self-play; 0: one for each CPU that nobody reserves
    actor_cpus: float = field(default=1.0, metadata=_at_least(0.0))  # that each reserves
    gpu_actors: int = field(default=0, metadata=_at_least(0))  # further actors of self-play, on GPUs
    gpu_share: float = field(default=1.0, metadata=_between(0.01, 1.0))  # of a GPU, that each reserves
    gpu_parallel_games: int = field(default=512, metadata=_between(1, 4096))  # in lockstep in each of them
    # 0: nothing is reserved, and the learner or the evaluator shares the cores of self-play.
    learner_cpus: float = field(default=0.0, metadata=_at_least(0.0))
    learner_gpus: float = field(default=0.0, metadata=_at_least(0.0))
    evaluators: int = field(default=1, metadata=_at_least(1))  # actors that play the gate's match
    evaluator_cpus: float = field(default=0.0, metadata=_at_least(0.0))
    evaluator_gpus: float = field(default=0.0, metadata=_at_least(0.0))
    # Generations of games that self-play may be ahead of the newest model; then it waits for the learner.
    ahead: float = field(default=1.0, metadata=_between(0.0, 100.0))


@dataclass(frozen=True)
class Config:
    """All parts of a run's configuration."""

    seed: int = field(default=0, metadata=_between(0, 2**32 - 1))
    game: Rules = field(default_factory=Rules)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    selfplay: SelfplayConfig = field(default_factory=SelfplayConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    inference: InferenceConfig = field(default_factory=InferenceConfig)
    ray: RayConfig = field(default_factory=RayConfig)

    def to_dict(self) -> dict:
        return dataclasses.asdict(self)

    def digest(self) -> str:
        """A short fingerprint of every value, kept with each model."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:12]


class _Loader(yaml.SafeLoader):
    """YAML that refuses what PyYAML lets pass: a key that stands in a mapping twice."""

    def construct_mapping(self, node, deep=False):
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name in names:
            if names.count(name) > 1:
                raise yaml.constructor.ConstructorError(
                    problem=f"{name} stands there twice", problem_mark=node.start_mark
                )
        return super().construct_mapping(node, deep)


# What the parser raises; ValueError for a file that is not UTF-8 or a date like 2020-13-45.
_NOT_YAML = (yaml.YAMLError, ValueError, RecursionError)


def load_config(path: str | Path | None = None, overrides: Iterable[str] = ()) -> Config:
    """Read a YAML file (none: the defaults) and apply `part.key=value` overrides, in order."""
    values = None
    source = "the defaults"
    if path is not None:
        source = str(path)
        try:
            values = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
        except OSError as error:
            raise ConfigError(f"cannot read config {source}: {error.strerror}") from None
        except _NOT_YAML as error:
            raise ConfigError(f"{source} is not valid YAML: {' '.join(str(error).split())}") from None
    config = build(Config, {} if values is None else values, source=source)
    for override in overrides:
        config = _apply_override(config, override)
    return config


def _apply_override(config: Config, override: str) -> Config:
    key, separator, text = override.partition("=")
    source = f"--set {override}"
    if not separator:
        raise ConfigError(f"{source}: expected part.key=value")
    try:
        value = yaml.load(text, _Loader)
    except _NOT_YAML:
        raise ConfigError(f"{source}: the value is not valid YAML") from None
    values = config.to_dict()
    *parts, name = key.strip().split(".")
    target = values
    for part in parts:
        if part not in target:
            raise ConfigError(_unknown_key(part, Config, source))
        if not isinstance(target[part], dict):
            raise ConfigError(f"{source}: {part} is a value, not a part")
        target = target[part]
    target[name] = value
    return build(Config, values, source=source)


def build(cls: type, values: Any, where: str = "", source: str = "") -> Any:
    """Make dataclass `cls` out of a mapping, refusing what does not fit; errors name `source` and the key."""
    if not isinstance(values, dict):
        raise ConfigError(f"{source}: {where or 'the file'} must be a mapping of keys to values")
    hints = typing.get_type_hints(cls)
    arguments = {}
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for name, value in values.items():
        key = f"{where}.{name}" if where else str(name)
        if name not in fields:
            raise ConfigError(_unknown_key(key, cls, source))
        if dataclasses.is_dataclass(hints[name]):
            arguments[name] = build(hints[name], value, key, source)
        else:
            arguments[name] = _check(value, hints[name], fields[name].metadata, key, source)
    try:
        return cls(**arguments)
    except ValueError as error:
        raise ConfigError(f"{source}: {where + ': ' if where else ''}{error}") from None


def _unknown_key(key: str, cls: type, source: str) -> str:
    names = [f.name for f in dataclasses.fields(cls)]
    close = difflib.get_close_matches(key.split(".")[-1], names, n=1)
    hint = f"did you mean {close[0]}?" if close else "allowed: " + ", ".join(names)
    return f"{source}: unknown key {key} ({hint})"


def _check(value: Any, hint: Any, metadata: Any, key: str, source: str) -> Any:
    """`value` as type `hint`, within the limits that the field's metadata states."""
    if typing.get_origin(hint) is tuple:
        return _check_schedule(value, key, source)
    if hint is float and isinstance(value, (int, str)) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):  # YAML 1.1 reads 1e-4 as a string
            value = float(value)
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        raise ConfigError(f"{source}: {key} must be {_TYPE_NAMES[hint]}, not {reprlib.repr(value)}")
    allowed = metadata.get("allowed")
    if allowed and value not in allowed:
        raise ConfigError(f"{source}: {key} must be one of {', '.join(allowed)}, not {reprlib.repr(value)}")
    if hint is float and not math.isfinite(value):
        raise ConfigError(f"{source}: {key} must be finite, not {reprlib.repr(value)}")
    low, high = metadata.get("low"), metadata.get("high")
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        limits = f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"
        raise ConfigError(f"{source}: {key} must be {limits}, not {reprlib.repr(value)}")
    return value


_TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


def _check_schedule(value: Any, key: str, source: str) -> tuple[tuple[int, float], ...]:
    """A list of [step, rate] pairs with rising steps, from step 0 on."""
    complaint = ConfigError(
        f"{source}: {key} must be a list of [step, rate] pairs, steps rising from 0, not {reprlib.repr(value)}"
    )
    try:
        pairs = tuple((step, float(rate)) for step, rate in value)
    except (TypeError, ValueError, OverflowError):
        raise complaint from None
    steps = [step for step, _ in pairs]
    rising = all(type(step) is int for step in steps) and steps[:1] == [0] and steps == sorted(set(steps))
    if not rising or not all(0 < rate < math.inf for _, rate in pairs):
        raise complaint
    return pairs
