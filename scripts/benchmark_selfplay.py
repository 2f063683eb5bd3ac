"""Self-play against the bare network, in one run: what the tree, rules and features cost (`benchmark.py selfplay`)."""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from alphago_zero.config import Config, load_config
from alphago_zero.constants import RunPaths
from alphago_zero.features import PLANES
from alphago_zero.inference import load_evaluator
from alphago_zero.quantization import ensure_quantized
from alphago_zero.selfplay import SelfplayWorker
from alphago_zero.workers import available_cores

_ROUNDS = 3  # the two are measured in turns, so that a noisy moment does not meet only one of them


def measure(config: Config, prefix: str, processes: int, seconds: float) -> dict:
    """Worker processes with one thread each: the bare network's rate and self-play's, and what a simulation costs."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    barrier = context.Barrier(processes)
    workers = [
        context.Process(target=_measure_worker, args=(config, prefix, seed, seconds, barrier, results))
        for seed in range(processes)
    ]
    for worker in workers:
        worker.start()
    parts = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    sums = {key: sum(part[key] for part in parts) for key in parts[0] if key != "runtime"}
    simulations = sums["simulations"]
    return {
        "runtime": parts[0]["runtime"],
        "network": f"{config.network.filters} x {config.network.blocks}",
        "readouts": config.search.readouts,
        "processes": processes,
        "network_evals_per_s": round(sums["bare_rate"]),
        "selfplay_evals_per_s": round(sums["selfplay_rate"]),
        "ratio": round(sums["selfplay_rate"] / sums["bare_rate"], 3),
        "overhead_us": round(1e6 * sums["outside_seconds"] / simulations, 2),
        "moves_per_s": round(sums["moves_rate"], 1),
        "games_per_min": round(60 * sums["moves_rate"] / max(sums["game_length"] / processes, 1), 1),
        # By CPU time, which other programs on the machine disturb least; a move is so many simulations.
        "cpu_ms_per_move": round(1e3 * sums["cpu_seconds"] / simulations * config.search.readouts, 3),
        "worker_mb": round(max(part["megabytes"] for part in parts)),
    }


class _Timed:
    """An evaluator that knows how much CPU time it took."""

    def __init__(self, evaluator):
        self._evaluator, self.model, self.seconds = evaluator, evaluator.model, 0.0

    def evaluate(self, planes):
        start = time.process_time()
        answer = self._evaluator.evaluate(planes)
        self.seconds += time.process_time() - start
        return answer


def _measure_worker(config: Config, prefix: str, seed: int, seconds: float, barrier, results) -> None:
    settings = config.inference
    worker = SelfplayWorker(config, np.random.default_rng(seed))
    evaluator = load_evaluator(prefix, worker.batch_size, 1, settings.backend, settings.precision)
    timed = _Timed(evaluator)
    worker.take(timed, -1.0)
    worker.assign(range(1_000_000))
    size = config.game.board_size
    planes = np.random.default_rng(0).integers(0, 2, (worker.batch_size, size, size, PLANES), dtype=np.uint8)
    lengths: list = []
    for _ in range(3 * config.search.readouts):  # so that the games are at different moves, and all is compiled
        lengths += [game.statistics["length"] for game in worker.step()]
    bare_seconds = bare = selfplay_seconds = cpu_seconds = 0
    timed.seconds = 0.0
    counters = worker.counters.copy()
    moves = _moves(worker)
    for _ in range(_ROUNDS):
        barrier.wait()
        start = time.perf_counter()
        while time.perf_counter() - start < seconds / _ROUNDS:
            evaluator.evaluate(planes)
            bare += len(planes)
        bare_seconds += time.perf_counter() - start
        barrier.wait()
        start, cpu_start = time.perf_counter(), time.process_time()
        while time.perf_counter() - start < seconds / _ROUNDS:
            for game in worker.step():
                lengths.append(game.statistics["length"])
                moves -= game.statistics["length"]
        selfplay_seconds += time.perf_counter() - start
        cpu_seconds += time.process_time() - cpu_start
    simulations, evaluations, _ = worker.counters - counters
    played = _moves(worker) - moves
    results.put(
        {
            "runtime": evaluator.description,
            "bare_rate": bare / bare_seconds,
            "selfplay_rate": evaluations / selfplay_seconds,
            "simulations": int(simulations),
            "outside_seconds": cpu_seconds - timed.seconds,
            "cpu_seconds": cpu_seconds,
            "moves_rate": played / selfplay_seconds,
            "game_length": float(np.mean(lengths)) if lengths else config.game.points,
            "megabytes": _peak_megabytes(),
        }
    )


def _peak_megabytes() -> float:
    """The most memory that this process had. (On Linux `getrusage` would count that of the parent, too.)"""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _moves(worker: SelfplayWorker) -> int:
    """Moves on the boards under way."""
    return sum(worker.lengths)


def random_model(config: Config, folder: str | Path) -> str:
    from alphago_zero.network import initialize_random_model

    prefix = initialize_random_model(RunPaths(folder), config)
    ensure_quantized(RunPaths(folder), config, prefix)
    return str(prefix)


def selfplay(config_file: str | None, overrides: list, model: str | None, readouts: list, seconds: float) -> list:
    """One row for each number of readouts; none given: that of the configuration."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        base = load_config(config_file, overrides)
        prefix = model or random_model(base, folder)
        processes = base.selfplay.workers or available_cores()
        for number in readouts or [base.search.readouts]:
            config = load_config(config_file, [*overrides, f"search.readouts={number}"])
            rows.append(measure(config, prefix, processes, seconds))
    return rows
