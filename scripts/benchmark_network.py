"""Evaluations/s for every runtime, precision and batch, and training samples/s (`scripts/benchmark.py network`)."""

from __future__ import annotations

import dataclasses
import multiprocessing
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from alphago_zero.config import Config, load_config
from alphago_zero.constants import RunPaths
from alphago_zero.features import PLANES
from alphago_zero.inference import cpu_has_bf16, load_evaluator
from alphago_zero.preprocessing import training_batches
from alphago_zero.quantization import example_positions, quantize_model
from alphago_zero.records import make_examples
from alphago_zero.workers import available_cores

_BATCHES = (8, 32, 64, 128)
_TRAINING_BATCHES = (256, 2048)
_ROUNDS = 3  # all are measured in turns, so that a noisy moment does not meet only one of them


def network(config_path: str | None, overrides: list, seconds: float, training_samples: int) -> dict:
    """Each rate is the median of three, measured for `seconds` each; the weights are random."""
    config = load_config(config_path, overrides)
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        prefix = _in_process(context, _initialize, folder, config)
        runtimes = _in_process(context, _runtimes, prefix)
        cores = available_cores()
        evaluations = []
        # One process with all cores, and one a core with one thread each.
        for processes, threads in ((1, cores), (cores, 1)):
            rates = _evaluation_rates(context, prefix, runtimes, processes, threads, seconds)
            for (backend, precision, batch), rate in rates.items():
                evaluations.append(
                    {
                        "backend": backend,
                        "precision": precision,
                        "batch": batch,
                        "processes": processes,
                        "threads": threads,
                        "evals_per_s": round(rate),
                    }
                )
    precisions = ["f32", "bf16"] if ("openvino", "bf16") in runtimes else ["f32"]
    training = [
        _in_process(context, _training_rate, config, precision, batch, training_samples)
        for batch in (_TRAINING_BATCHES if training_samples else ())
        for precision in precisions
    ]
    shape = f"{config.network.filters} x {config.network.blocks}"
    return {"shape": shape, "cores": cores, "network": evaluations, "training": training}


def _in_process(context, function, *arguments):
    """Call in a process of its own, so that no runtime's threads or memory stay."""
    with ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(function, *arguments).result()


def _initialize(folder: str, config: Config) -> str:
    from alphago_zero.network import initialize_random_model

    paths = RunPaths(folder)
    prefix = initialize_random_model(paths, config)
    quantize_model(prefix, *example_positions(paths, config.game))
    return str(prefix)


def _runtimes(prefix: str) -> list:
    """(backend, precision) of all that run on this computer."""
    bf16 = [("openvino", "bf16")] if cpu_has_bf16() else []
    return [("tensorflow", "f32"), ("openvino", "f32"), *bf16, ("openvino", "int8")]


def _evaluation_rates(context, prefix: str, runtimes: list, processes: int, threads: int, seconds: float) -> dict:
    barrier, results = context.Barrier(processes), context.Queue()
    arguments = (prefix, runtimes, threads, seconds, barrier, results)
    workers = [context.Process(target=_evaluate, args=arguments) for _ in range(processes)]
    for worker in workers:
        worker.start()
    parts = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    return {key: sum(part[key] for part in parts) for key in parts[0]}


def _evaluate(prefix: str, runtimes: list, threads: int, seconds: float, barrier, results) -> None:
    rates: dict = {}
    evaluators = {
        (*runtime, batch): load_evaluator(prefix, batch, threads, *runtime)
        for runtime in runtimes
        for batch in _BATCHES
    }
    for _ in range(_ROUNDS):
        for key, evaluator in evaluators.items():
            size = evaluator.model.rules.board_size
            planes = np.random.default_rng(0).integers(0, 2, (key[2], size, size, PLANES), dtype=np.uint8)
            evaluator.evaluate(planes)
            barrier.wait()
            calls, started = 0, time.perf_counter()
            while (elapsed := time.perf_counter() - started) < seconds:
                evaluator.evaluate(planes)
                calls += 1
            rates.setdefault(key, []).append(calls * key[2] / elapsed)
    results.put({key: statistics.median(values) for key, values in rates.items()})


def _training_rate(config: Config, precision: str, batch: int, samples: int) -> dict:
    """Samples/s of `train`, and at most which share of its time it can have waited for data.

    That share is the time in which batches were made, as if none had been made while the one before was learned.
    """
    from alphago_zero import network as networks

    seconds = []

    def timed_batches(*arguments):
        batches = training_batches(*arguments)
        while True:
            started = time.perf_counter()
            batch = next(batches)
            seconds.append(time.perf_counter() - started)
            yield batch

    networks.training_batches = timed_batches
    training = dataclasses.replace(config.training, batch_size=batch, precision=precision, checkpoint_steps=10**6)
    config = dataclasses.replace(config, training=training)
    with tempfile.TemporaryDirectory() as folder:
        paths = RunPaths(folder)
        networks.initialize_random_model(paths, config)
        result = networks.train(paths, config, max(4, samples // batch), _random_examples(config.game.board_size))
    step_seconds = result.seconds / (result.steps - 1)
    return {
        "precision": precision,
        "batch": batch,
        "samples_per_s": round(batch / step_seconds),
        "waiting_at_most": round(statistics.median(seconds) / step_seconds, 4),
    }


def _random_examples(size: int, count: int = 4096) -> np.ndarray:
    rng = np.random.default_rng(0)
    planes = rng.integers(0, 2, (count, size, size, PLANES), dtype=np.uint8)
    pi = rng.dirichlet(np.ones(size * size + 1), count).astype(np.float32)
    return make_examples(planes, pi, rng.choice([-1.0, 1.0], count).astype(np.float32))
