"""One game, as GTP and the page search it: visits/s by leaves in flight (`scripts/benchmark.py leaves`)."""

from __future__ import annotations

import tempfile
import time

import numpy as np
from benchmark_selfplay import random_model

from alphago_zero.config import load_config
from alphago_zero.go import BoardState
from alphago_zero.inference import load_evaluator
from alphago_zero.mcts import TreeSearch
from alphago_zero.workers import available_cores

_LEAVES = (1, 2, 4, 8, 16, 32)
_ROUNDS = 3  # all are measured in turns, so that a noisy moment does not meet only one of them


def leaves(config_file: str | None, overrides: list, model: str | None, readouts: int, seconds: float) -> list:
    """A row for each number of leaves: searches of `readouts` simulations from the empty board, again and again."""
    config = load_config(config_file, overrides)
    with tempfile.TemporaryDirectory() as folder:
        prefix = model or random_model(config, folder)
        settings, threads = config.inference, available_cores()
        evaluators = {n: load_evaluator(prefix, n, threads, settings.backend, settings.precision) for n in _LEAVES}
    visits, spent = dict.fromkeys(_LEAVES, 0), dict.fromkeys(_LEAVES, 0.0)
    for _ in range(_ROUNDS):
        for number, evaluator in evaluators.items():
            search = TreeSearch(config.game, config.search, np.random.default_rng(0), leaves=number)
            start = time.perf_counter()
            while time.perf_counter() - start < seconds / _ROUNDS:
                search.set_position(0, BoardState(config.game))
                search.begin(0, readouts)
                search.run(evaluator)
                visits[number] += readouts
            spent[number] += time.perf_counter() - start
    return [
        {
            "runtime": evaluators[number].description,
            "threads": threads,
            "leaves": number,
            "visits_per_s": round(visits[number] / spent[number]),
        }
        for number in _LEAVES
    ]
