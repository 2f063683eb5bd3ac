"""The network f(s) = (p, v): its graph, its training on tf.estimator, and its export (paper: Methods).

In: batches of `preprocessing` (planes, pi, z, ownership). Out: checkpoints and TensorBoard events in
estimator_working_dir, and models: a checkpoint, a frozen inference graph with folded batch norm, and a JSON.
`_forward` is the architecture, written once: with trainable layers it is learned, with folded layers it is exported.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import functools
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tqdm

from alphago_zero.config import Config, NetworkConfig, TrainingConfig
from alphago_zero.constants import RunPaths
from alphago_zero.errors import Failure
from alphago_zero.features import PLANES, extract_features
from alphago_zero.files import atomic_path, atomic_write_bytes, remove_temporaries
from alphago_zero.go import BoardState
from alphago_zero.inference import cpu_has_bf16, load_evaluator
from alphago_zero.model import (
    SUFFIXES,
    ModelError,
    ModelInfo,
    graph_digest,
    list_models,
    load_model_info,
    model_file,
    model_name,
    promote,
    save_model_info,
)
from alphago_zero.preprocessing import Batch, load_holdout, load_window, plain_batches, read_ledger, training_batches
from alphago_zero.quiet_tensorflow import tf
from alphago_zero.records import UNKNOWN, RecordError

v1 = tf.compat.v1
_AVERAGE = "/ExponentialMovingAverage"  # behind the name of a variable: its running mean
_FIGURES = "figures"  # the graph's collection of scalars that a training step reports


class _TrainableLayers:
    """Layers with variables, created or found by name."""

    def __init__(self, network: NetworkConfig, training: bool):
        self._network = network
        self._training = training

    def convolution(self, x, filters: int, size: int, name: str):
        """Convolution and batch norm, without activation."""
        kernel = _variable(f"{name}/kernel", [size, size, x.shape[-1], filters], v1.variance_scaling_initializer(2.0))
        return self._batch_norm(tf.nn.conv2d(x, kernel, strides=1, padding="SAME"), name)

    def _batch_norm(self, x, name: str):
        channels = [x.shape[-1]]
        gamma = _variable(f"{name}/gamma", channels, v1.ones_initializer())
        beta = _variable(f"{name}/beta", channels, v1.zeros_initializer())
        mean = _variable(f"{name}/moving_mean", channels, v1.zeros_initializer(), trainable=False)
        variance = _variable(f"{name}/moving_variance", channels, v1.ones_initializer(), trainable=False)
        epsilon = self._network.batch_norm_epsilon
        if not self._training:
            return v1.nn.fused_batch_norm(x, gamma, beta, mean, variance, epsilon, is_training=False)[0]
        y, batch_mean, batch_variance = v1.nn.fused_batch_norm(x, gamma, beta, epsilon=epsilon, is_training=True)
        for moving, batch in ((mean, batch_mean), (variance, batch_variance)):
            update = v1.assign_sub(moving, (moving - batch) * (1 - self._network.batch_norm_momentum))
            v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
        return y

    def dense(self, x, units: int, name: str, *, last: bool = False):
        zero = last and self._network.zero_heads
        initializer = v1.zeros_initializer() if zero else v1.variance_scaling_initializer(1.0 if last else 2.0)
        kernel = _variable(f"{name}/kernel", [x.shape[-1], units], initializer)
        return tf.matmul(x, kernel) + _variable(f"{name}/bias", [units], v1.zeros_initializer())


class _FoldedLayers:
    """The same layers as constants, with batch norm folded: gamma (Wx - mean) / sigma + beta = W'x + b'."""

    def __init__(self, network: NetworkConfig, weights: Callable[[str], np.ndarray]):
        self._network = network
        self._weights = weights

    def convolution(self, x, filters: int, size: int, name: str):
        kernel, gamma, beta, mean, variance = (
            self._weights(f"{name}/{part}") for part in ("kernel", "gamma", "beta", "moving_mean", "moving_variance")
        )
        scale = gamma / np.sqrt(variance + self._network.batch_norm_epsilon)
        return tf.nn.conv2d(x, kernel * scale, strides=1, padding="SAME") + (beta - mean * scale)

    def dense(self, x, units: int, name: str, *, last: bool = False):
        return tf.matmul(x, self._weights(f"{name}/kernel")) + self._weights(f"{name}/bias")


def _variable(name: str, shape: Sequence[int], initializer, trainable: bool = True):
    return v1.get_variable(name, shape, tf.float32, initializer, trainable=trainable, use_resource=True)


def _tower(layers, planes, network: NetworkConfig, scope: str):
    """First block and residual blocks: [B, N, N, 17] -> [B, N, N, filters]."""
    x = tf.nn.relu(layers.convolution(planes, network.filters, 3, f"{scope}/first"))
    for block in range(network.blocks):
        y = tf.nn.relu(layers.convolution(x, network.filters, 3, f"{scope}/block{block:02d}/first"))
        y = layers.convolution(y, network.filters, 3, f"{scope}/block{block:02d}/second")
        x = tf.nn.relu(x + y if network.trunk == "residual" else y)
    return x


def _forward(layers, planes, network: NetworkConfig):
    """uint8 [B, N, N, 17] -> logits [B, N * N + 1], value [B], and the features [B, N, N, filters] under the value."""
    size = planes.shape[1]
    planes = tf.cast(planes, tf.float32)
    if network.heads == "dual":
        policy_features = value_features = _tower(layers, planes, network, "trunk")
    else:
        policy_features = _tower(layers, planes, network, "policy_trunk")
        value_features = _tower(layers, planes, network, "value_trunk")
    x = tf.nn.relu(layers.convolution(policy_features, 2, 1, "policy/convolution"))
    logits = layers.dense(tf.reshape(x, [-1, 2 * size * size]), size * size + 1, "policy/moves", last=True)
    x = tf.nn.relu(layers.convolution(value_features, 1, 1, "value/convolution"))
    x = tf.nn.relu(layers.dense(tf.reshape(x, [-1, size * size]), network.value_hidden, "value/hidden"))
    value = tf.tanh(layers.dense(x, 1, "value/outcome", last=True))[:, 0]
    return logits, value, value_features


def _ownership(features):
    """[B, N, N, filters] -> [B, N * N]: the expected owner of each point, 1 the player to move (not in the paper)."""
    kernel = _variable("ownership/kernel", [1, 1, features.shape[-1], 1], v1.zeros_initializer())
    owner = tf.nn.conv2d(features, kernel, strides=1, padding="SAME")
    return tf.tanh(tf.reshape(owner, [-1, features.shape[1] * features.shape[2]]))


def model_fn(features, labels, mode, params):
    """For `tf.estimator.Estimator`; params: `network` and `training`, the parts of the configuration.

    Loss l = (z - v)^2 - pi . log p + c ||theta||^2, theta being the weights without biases and batch norm.
    """
    network: NetworkConfig = params["network"]
    training: TrainingConfig = params["training"]
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    logits, value, value_features = _forward(_TrainableLayers(network, is_training), features["planes"], network)
    pi, z = labels["pi"], labels["z"]

    log_p = tf.nn.log_softmax(logits)
    examples = {  # [B] each; their means are the figures of a batch or of a validation
        "policy_loss": -tf.reduce_sum(pi * log_p, axis=1),
        "value_loss": tf.square(z - value),
        "policy_entropy": -tf.reduce_sum(tf.exp(log_p) * log_p, axis=1),
        "policy_accuracy": tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(pi, 1)), tf.float32),
        "value_accuracy": tf.cast(tf.equal(tf.sign(value), tf.sign(z)), tf.float32),
    }
    if network.ownership:
        known = tf.cast(tf.not_equal(labels["ownership"], UNKNOWN), tf.float32)
        error = known * tf.square(tf.cast(labels["ownership"], tf.float32) - _ownership(value_features))
        examples["ownership_loss"] = tf.reduce_mean(error, axis=1)
    figures = {name: tf.reduce_mean(values) for name, values in examples.items()}
    weights = [variable for variable in v1.trainable_variables() if variable.op.name.endswith("/kernel")]
    figures["l2_loss"] = training.l2 * tf.add_n([tf.reduce_sum(tf.square(weight)) for weight in weights])
    loss = figures["policy_loss"] + training.value_weight * figures["value_loss"] + figures["l2_loss"]
    if network.ownership:
        loss += training.ownership_weight * figures["ownership_loss"]

    step = v1.train.get_global_step()
    averages = _averages(training, step)
    if not is_training:
        metrics = {name: v1.metrics.mean(values) for name, values in examples.items()}
        saver = v1.train.Saver(averages.variables_to_restore(_averaged_variables())) if averages else None
        scaffold = v1.train.Scaffold(saver=saver)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics, scaffold=scaffold)

    starts, rates = zip(*training.learning_rates)
    # A rate holds from its step on; `piecewise_constant` changes after a boundary.
    # (-1 is below every step; without it a constant rate would have no boundary.)
    rate = v1.train.piecewise_constant(step, [-1, *(start - 1 for start in starts[1:])], [rates[0], *rates])
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        update = v1.train.MomentumOptimizer(rate, training.momentum).minimize(loss, global_step=step)
    if averages:
        with tf.control_dependencies([update]):
            update = averages.apply(_averaged_variables())
    for name, figure in {"total_loss": loss, **figures, "learning_rate": rate, "step": step}.items():
        v1.summary.scalar(name, figure)
        v1.add_to_collection(_FIGURES, tf.identity(figure, name=f"figures/{name}"))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update)


def _averages(training: TrainingConfig, step):
    """Running means of all weights and of batch norm's statistics over the last steps (not in the paper), or None."""
    if training.average == 0:
        return None
    return tf.train.ExponentialMovingAverage(training.average, num_updates=step)  # begins with shorter means


def _averaged_variables() -> list:
    statistics = [variable for variable in v1.global_variables() if "/moving_" in variable.op.name]
    return v1.trainable_variables() + statistics


def _estimator(paths: RunPaths, config: Config):
    session = v1.ConfigProto()
    if config.training.precision == "bf16" or (config.training.precision == "auto" and cpu_has_bf16()):
        on = session.graph_options.rewrite_options.ON
        session.graph_options.rewrite_options.auto_mixed_precision_onednn_bfloat16 = on
    run_config = tf.estimator.RunConfig(
        tf_random_seed=config.seed,
        session_config=session,
        save_checkpoints_steps=config.training.checkpoint_steps,
        keep_checkpoint_max=3,
        log_step_count_steps=None,
    )
    params = {"network": config.network, "training": config.training}
    return tf.estimator.Estimator(model_fn, str(paths.estimator), run_config, params)


def _dataset(batches: Callable[[], Iterator[Batch]], size: int):
    """Batches for the Estimator, (planes, targets), made by another thread while the last one is learned."""
    points = size * size
    signature = {
        "planes": tf.TensorSpec([None, size, size, PLANES], tf.uint8),
        "pi": tf.TensorSpec([None, points + 1], tf.float32),
        "z": tf.TensorSpec([None], tf.float32),
        "ownership": tf.TensorSpec([None, points], tf.int8),
    }
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    dataset = dataset.map(lambda batch: ({"planes": batch.pop("planes")}, batch)).prefetch(2)
    options = tf.data.Options()
    options.autotune.enabled = False  # nothing to tune; and its thread sleeps for so long that sessions end late
    return dataset.with_options(options)


def initialize_random_model(paths: RunPaths, config: Config) -> Path:
    """Version 0: random weights at step 0, published as the run's first and best model. Killed, call it again."""
    if not list_models(paths):
        paths.estimator.mkdir(parents=True, exist_ok=True)
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(config.seed)
            v1.train.create_global_step()
            empty = _dataset(lambda: iter(()), config.game.board_size)
            features, labels = v1.data.make_one_shot_iterator(empty).get_next()
            params = {"network": config.network, "training": config.training}
            model_fn(features, labels, tf.estimator.ModeKeys.TRAIN, params)
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, str(paths.estimator / "model.ckpt"), global_step=0)
        export_latest_checkpoint_model(paths, config)
    first, *later = list_models(paths)
    if not later:
        promote(paths, first.name)
    return first


@dataclass(frozen=True)
class Training:
    """What a call of `train` did."""

    steps: int
    seconds: float  # of the steps after the first, in which the graph is made ready
    figures: dict[str, float]  # means over the steps: total_loss, policy_loss, ...


def train(paths: RunPaths, config: Config, target_step: int, examples: np.ndarray | None = None) -> Training:
    """Go on from the last checkpoint until the global step is `target_step`: if killed, call it again with the same.

    Learns from the run's window, or from `examples` where they are given.
    """
    _check_shape(paths, config)
    first_step = latest_step(paths)
    steps = max(0, target_step - first_step)
    if steps == 0:
        return Training(0, 0.0, {})
    batch_size, size = config.training.batch_size, config.game.board_size
    rng = np.random.default_rng([config.seed, first_step])
    if examples is None:
        examples = load_window(paths, config, limit=steps * batch_size, rng=rng)
    if len(examples) == 0:
        raise RecordError(f"nothing to train on in {paths.chunks}: play and aggregate games first")
    variables = _read_weights(_latest_checkpoint(paths))
    if config.training.average and not any(name.endswith(_AVERAGE) for name in variables):
        raise ModelError(f"training.average: the run in {paths.root} began without it; take another --run-dir")
    for leftover in paths.estimator.glob("*.tmp*"):  # of a killed writer, or of a full disk
        leftover.unlink(missing_ok=True)
    log = _TrainingLog(steps)
    with _clear_errors(paths), log.progress:
        _estimator(paths, config).train(
            lambda: _dataset(lambda: training_batches(examples, batch_size, rng), size),
            hooks=[log],
            max_steps=target_step,
        )
    return log.result()


class _TrainingLog(tf.estimator.SessionRunHook):
    """Means of the figures, time, and a progress bar on stderr, if that is a terminal."""

    def __init__(self, steps: int):
        self.progress = tqdm.tqdm(total=steps, desc="train", unit="step", disable=None)
        self._times: list[float] = []  # at the end of each step
        self._sums: dict[str, float] = collections.defaultdict(float)

    def begin(self):
        self._figures = {tensor.op.name.split("/")[-1]: tensor for tensor in v1.get_collection(_FIGURES)}

    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs(self._figures)

    def after_run(self, run_context, run_values):
        for name, figure in run_values.results.items():
            self._sums[name] += float(figure)
        self._times.append(time.perf_counter())
        self.progress.set_postfix(loss=f"{run_values.results['total_loss']:.3f}", refresh=False)
        self.progress.update()

    def result(self) -> Training:
        steps = len(self._times)
        return Training(
            steps, self._times[-1] - self._times[0], {name: total / steps for name, total in self._sums.items()}
        )


def next_target_step(paths: RunPaths, config: Config) -> int:
    """The step at which the next model is due: `training.steps` after the newest one, or as `training.reuse` asks.

    It follows from the newest model and the ledger alone, so that a killed run aims at the same step again.
    """
    newest = load_model_info(list_models(paths)[-1])
    if config.training.steps:
        return newest.steps + config.training.steps
    new_positions = sum(chunk.positions for chunk in read_ledger(paths)) - newest.positions
    return newest.steps + math.ceil(new_positions * config.training.reuse / config.training.batch_size)


def validate(
    paths: RunPaths, config: Config, model: Path | None = None, models: int = 5, name: str = "holdout"
) -> dict[str, float]:
    """The figures of a model (none: of the last checkpoint) on games kept out of training.

    They are those of the newest `models` models that played any: a model that the gate refused plays none.
    TensorBoard shows the figures under `name`.
    """
    _check_shape(paths, config)
    size = config.game.board_size
    examples = load_holdout(paths, models, size)
    if len(examples) == 0:
        raise RecordError(f"no games to validate on in {paths.holdout('')}")
    checkpoint = str(model) if model else _latest_checkpoint(paths)
    _read_weights(checkpoint)
    batches = functools.partial(plain_batches, examples, config.training.batch_size)
    with _clear_errors(paths):
        figures = _estimator(paths, config).evaluate(
            lambda: _dataset(batches, size),
            checkpoint_path=checkpoint,
            name=name,
        )
    return {name: float(figure) for name, figure in figures.items()}


def latest_step(paths: RunPaths) -> int:
    """The global step of the last checkpoint."""
    return int(_latest_checkpoint(paths).rpartition("-")[2])


def _latest_checkpoint(paths: RunPaths) -> str:
    try:
        checkpoint = tf.train.latest_checkpoint(str(paths.estimator))
    except ValueError:
        checkpoint = None
    if checkpoint is None and list_models(paths):
        raise ModelError(f"{paths.estimator / 'checkpoint'}, or the checkpoint that it names, is missing or damaged")
    if checkpoint is None:
        raise ModelError(f"no checkpoint in {paths.estimator}: initialize a random model first")
    return checkpoint


def _check_shape(paths: RunPaths, config: Config) -> None:
    """A run's network cannot change its shape."""
    for prefix in list_models(paths)[-1:]:
        info = load_model_info(prefix)
        if (info.network, info.rules.board_size) != (config.network, config.game.board_size):
            raise ModelError(f"the configuration asks for another network or board than {prefix} has")


def _read_weights(checkpoint: str) -> dict[str, np.ndarray]:
    """All variables of a checkpoint by name; their checksums are looked at, so that a damaged one is found here."""
    try:
        reader = tf.train.load_checkpoint(checkpoint)
        return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(f"checkpoint {checkpoint} is damaged: {reason}") from None


@contextlib.contextmanager
def _clear_errors(paths: RunPaths):
    """A full disk, whose error has many faces in TensorFlow, is told as what it is; so is a loss beyond all bounds."""
    try:
        yield
    except tf.estimator.NanLossDuringTrainingError:
        reason = "the loss is not a number any more: lower training.learning_rates"
        raise Failure(f"{reason}; training goes on from the last checkpoint") from None
    except (tf.errors.OpError, RuntimeError) as error:
        if os.strerror(errno.ENOSPC) not in str(error):
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(paths.estimator)) from None


def export_latest_checkpoint_model(paths: RunPaths, config: Config) -> Path:
    """Publish the last checkpoint as the run's next model, unless that is done already."""
    checkpoint, steps = _latest_checkpoint(paths), latest_step(paths)
    parent = None
    if list_models(paths):
        parent = load_model_info(list_models(paths)[-1])
        if parent.steps == steps:
            return paths.models / parent.name
    remove_temporaries(paths.models)
    version = parent.version + 1 if parent else 0
    prefix = paths.models / model_name(version, config.seed)
    graph = _inference_graph(checkpoint, config)
    for suffix in SUFFIXES[:2]:
        with atomic_path(model_file(prefix, suffix)) as temporary:
            shutil.copyfile(checkpoint + suffix, temporary)
    atomic_write_bytes(model_file(prefix, ".pb"), graph)
    ledger = read_ledger(paths) if parent else []  # random weights have learned from no game, even if there are some
    info = ModelInfo(
        name=prefix.name,
        version=version,
        rules=config.game,
        network=config.network,
        graph_digest=graph_digest(graph),
        parent=parent.name if parent else "",
        steps=steps,
        games=sum(len(chunk.games) for chunk in ledger),
        positions=sum(chunk.positions for chunk in ledger),
        config_digest=config.digest(),
    )
    save_model_info(prefix, info)
    return prefix


def _inference_graph(checkpoint: str, config: Config) -> bytes:
    """planes uint8 [B, N, N, 17] -> policy [B, N * N + 1] and value [B], all weights being constants."""
    size = config.game.board_size
    values = _read_weights(checkpoint)
    kind = _AVERAGE if config.training.average else ""

    def weights(name: str) -> np.ndarray:
        return values[name + kind]

    with tf.Graph().as_default() as graph:
        planes = v1.placeholder(tf.uint8, [None, size, size, PLANES], name="planes")
        logits, value, _ = _forward(_FoldedLayers(config.network, weights), planes, config.network)
        tf.nn.softmax(logits, name="policy")
        tf.identity(value, name="value")
        return graph.as_graph_def().SerializeToString(deterministic=True)


class PolicyValueNetwork:
    """A model that looks at board states: p over N * N + 1 moves, illegal ones included, and v for the player to move.

    >>> p, v = PolicyValueNetwork("models/000010-pretty-tetra").predict_on_single_board_state(BoardState())
    """

    def __init__(self, prefix: str | Path, batch_size: int = 64, threads: int = 1):
        self._evaluator = load_evaluator(prefix, batch_size, threads)
        self._batch_size = batch_size
        self.model = self._evaluator.model

    def predict_on_single_board_state(self, state: BoardState) -> tuple[np.ndarray, float]:
        p, v = self.predict_on_multiple_board_states([state])
        return p[0], float(v[0])

    def predict_on_multiple_board_states(self, states: Sequence[BoardState]) -> tuple[np.ndarray, np.ndarray]:
        """[B, N * N + 1] and [B]."""
        planes = np.stack([extract_features(state) for state in states])
        starts = range(0, len(planes), self._batch_size)
        parts = [self._evaluator.evaluate(planes[start : start + self._batch_size]) for start in starts]
        return np.concatenate([p for p, _ in parts]), np.concatenate([v for _, v in parts])
