"""`python train.py`: the whole loop, from random weights to a stronger player, until it is stopped.

It can be stopped at any time, by Ctrl-C, kill or power failure: started again, it goes on.
"""

from __future__ import annotations

import logging as python_logging
from collections.abc import Callable

import argh
from absl import logging

from alphago_zero.constants import RunPaths
from alphago_zero.controller import NAMES, Parser, open_run, run_safely
from alphago_zero.interrupts import obey_signals


def _limit(number: type) -> Callable:
    """The type of an option that ends the run."""

    def read(text: str):
        value = number(text)
        if not value > 0:  # nor is nan
            raise ValueError
        return value

    read.__name__ = f"{number.__name__} above 0"  # how argparse's complaint calls it
    return read


@argh.arg("--set", action="append", metavar="PART.KEY=VALUE", help="change one value; as often as needed")
@argh.arg("--config", help="a file like configs/fast.yaml; default: what the run last used, or the defaults")
@argh.arg("--run-dir", help="where the run keeps its files")
@argh.arg("--games-from", metavar="RUN", help="learn first from another run's games: so a larger network begins well")
@argh.arg("--engine", choices=["local", "ray"], help="who works: this computer's processes, or actors of Ray")
@argh.arg("--address", help="HOST:PORT of a Ray cluster, or auto; default: a new one on this computer")
@argh.arg("--generations", type=_limit(int), help="stop when so many models were trained")
@argh.arg("--hours", type=_limit(float), help="stop after the generation in which so much time is up")
@argh.arg("--games", type=_limit(int), help="stop after the generation in which the run has so many games")
def train(
    config: str | None = None,
    run_dir: str = ".",
    set: list | None = None,
    games_from: str | None = None,
    engine: str = "local",
    address: str | None = None,
    generations: int | None = None,
    hours: float | None = None,
    games: int | None = None,
) -> None:
    """Learn Go from nothing. Example: train.py --config configs/fast.yaml --run-dir runs/first --hours 3"""
    from alphago_zero.engines import open_engine
    from alphago_zero.growth import adopt_games
    from alphago_zero.loop import Loop, LoopAtOnce, keep_config, lock_run

    paths, configuration = open_run(config, run_dir, set)
    obey_signals()
    with lock_run(paths):
        keep_config(paths, configuration)
        if games_from:
            adopt_games(paths, RunPaths(games_from), configuration)
        paths.logs.mkdir(parents=True, exist_ok=True)
        log = python_logging.FileHandler(paths.logs / "train.log", encoding="utf-8")
        log.setFormatter(python_logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.handleError = lambda record: None  # a full disk is told by the stage that meets it, in one line
        logging.get_absl_logger().addHandler(log)
        with open_engine(engine, paths, configuration, address) as workers:
            loop = LoopAtOnce if workers.at_once else Loop
            loop(paths, configuration, workers).run(generations, hours, games)


def main(arguments: list | None = None) -> None:
    parser = Parser()
    parser.set_default_command(train, name_mapping_policy=NAMES)
    run_safely(lambda: parser.dispatch(arguments), "the same command goes on from here")


if __name__ == "__main__":
    main()
