#!/usr/bin/env python
"""How fast is it? `python scripts/benchmark.py rules | network | selfplay | leaves | ray | actors [--json]`

A shared machine is noisy: what counts is the ratio of two rates measured in the same run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import argh

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

_REFERENCE = ["network.filters=64", "network.blocks=5", "search.readouts=100", "selfplay.no_pass_before=0"]


@argh.arg("--json", help="print JSON for programs")
def rules(json: bool = False, games: int = 50_000) -> None:
    """Random games on one core: games/s, moves/s, and what compiling costs."""
    from benchmark_rules import measure

    report(measure(games), json)


@argh.arg("--seconds", help="for each of the three measurements of a rate")
@argh.arg("--training-samples", help="how many are learned to measure training; 0: not at all")
@argh.arg("--set", action="append", help="part.key=value, as often as needed")
def network(
    config: str | None = None,
    seconds: float = 1.0,
    training_samples: int = 8192,
    set: list | None = None,
    json: bool = False,
) -> None:
    """Evaluations/s for runtime x precision x batch, with one process and with one a core; training samples/s."""
    from benchmark_network import network as measure_network

    figures = measure_network(config, _overrides(config, set), seconds, training_samples)
    report(figures if json else figures["network"] + figures["training"], json)


@argh.arg("--readouts", help="simulations a move; several, separated by commas, show how cost and memory grow")
@argh.arg("--precision", help="auto, f32, bf16 or int8")
@argh.arg("--set", action="append", help="part.key=value, as often as needed")
def selfplay(
    config: str | None = None,
    model: str | None = None,
    readouts: str | None = None,
    precision: str = "auto",
    seconds: float = 30.0,
    set: list | None = None,
    json: bool = False,
) -> None:
    """Self-play's evaluations/s against the bare network's, in the same processes of the same run."""
    from benchmark_selfplay import selfplay as measure_selfplay

    numbers = [int(number) for number in readouts.split(",")] if readouts else []
    overrides = [*_overrides(config, set), f"inference.precision={precision}"]
    rows = measure_selfplay(config, overrides, model, numbers, seconds)
    report(rows[0] if len(rows) == 1 else rows, json)


@argh.arg("--readouts", help="simulations of a search")
@argh.arg("--seconds", help="for each number of leaves")
@argh.arg("--set", action="append", help="part.key=value, as often as needed")
def leaves(
    config: str | None = None,
    model: str | None = None,
    readouts: int = 400,
    seconds: float = 3.0,
    set: list | None = None,
    json: bool = False,
) -> None:
    """One game, as GTP and the page search it: visits/s by leaves in flight."""
    from benchmark_leaves import leaves as measure_leaves

    report(measure_leaves(config, _overrides(config, set), model, readouts, seconds), json)


def _overrides(config: str | None, set: list | None) -> list:
    """Without a configuration the same network is measured from year to year, whatever the default is."""
    return [*([] if config else _REFERENCE), *(set or [])]


@argh.arg("--actors", help="how many one-core actors; several, separated by commas")
@argh.arg("--seconds", help="for each engine and number of actors")
@argh.arg("--set", action="append", help="part.key=value, as often as needed")
def ray(
    config: str | None = None,
    model: str | None = None,
    actors: str = "1,2",
    seconds: float = 30.0,
    set: list | None = None,
    json: bool = False,
) -> None:
    """Self-play by the Ray engine's actors against the local engine's processes, in turns."""
    from benchmark_ray import compare

    report(compare(config, set or [], model, seconds, [int(number) for number in actors.split(",")]), json)


@argh.arg("--rate", help="games a second that each of them ends")
@argh.arg("--games", help="a generation")
@argh.arg("--ray", help="every message goes through Ray, as it does between computers")
@argh.arg("--hosts", help="with --ray: processes that play the actors")
def actors(
    actors: int = 1000,
    rate: float = 0.25,
    games: int = 5000,
    generations: int = 2,
    ray: bool = False,
    hosts: int = 4,
    json: bool = False,
) -> None:
    """The real loop and writer with simulated actors, learner and evaluator: what the driver can take."""
    from benchmark_ray import simulate

    report(simulate(actors, rate, generations, games, ray, hosts), json)


def report(figures: dict | list, as_json: bool) -> None:
    if as_json:
        print(json.dumps(figures))
        return
    for row in figures if isinstance(figures, list) else [figures]:
        print("  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    argh.dispatch_commands([rules, network, selfplay, leaves, ray, actors])
