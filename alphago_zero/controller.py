"""The commands: `python controller.py COMMAND`, or `alphago-zero COMMAND` when installed.

Thin: each command is a few calls into the modules that do the work. Results go to stdout, all else to stderr. A user's
mistake gives one line on stderr and exit code 2.
"""

from __future__ import annotations

import errno
import json as json_format
import logging as python_logging
import sys
from pathlib import Path
from typing import Callable, NoReturn

import argh
from absl import logging

from alphago_zero.config import Config, ConfigError, load_config
from alphago_zero.constants import RunPaths
from alphago_zero.errors import Failure, UserError
from alphago_zero.model import ModelError, default_model, load_model_info, resolve_model


def _common(function: Callable) -> Callable:
    """The options that every command has."""
    for decorate in (
        argh.arg("--set", action="append", metavar="PART.KEY=VALUE", help="change one value; as often as needed"),
        argh.arg("--config", help="a file like configs/fast.yaml; default: what the run last used, or the defaults"),
        argh.arg("--run-dir", help="where the run keeps its files"),
    ):
        function = decorate(function)
    return function


def open_run(config: str | None, run_dir: str, set: list | None) -> tuple[RunPaths, Config]:
    """The paths and the configuration that the common options mean."""
    paths = RunPaths(run_dir)
    kept = paths.root / "config.json"  # JSON is YAML, too
    if config is None and kept.is_file():
        config = str(kept)
    return paths, load_config(config, set or [])


@_common
def initialize_random_model(config: str | None = None, run_dir: str = ".", set: list | None = None) -> None:
    """Make the first model of a run, with random weights. Example: controller.py initialize-random-model"""
    from alphago_zero.loop import keep_config, lock_run

    paths, configuration = open_run(config, run_dir, set)
    with lock_run(paths):
        keep_config(paths, configuration)
        from alphago_zero.network import initialize_random_model as initialize  # not before mistakes were found

        print(initialize(paths, configuration))


def _stage(name: str, config: str | None, run_dir: str, set: list | None) -> None:
    """One stage of the loop on its own."""
    from alphago_zero.engines import LocalEngine
    from alphago_zero.loop import Loop, keep_config, lock_run

    paths, configuration = open_run(config, run_dir, set)
    with lock_run(paths):
        keep_config(paths, configuration)
        resolve_model("latest", paths)
        with LocalEngine(paths, configuration) as engine:
            getattr(Loop(paths, configuration, engine), name)()


@_common
def selfplay(config: str | None = None, run_dir: str = ".", set: list | None = None) -> None:
    """Let the best model play the games that this generation still needs. Example: controller.py selfplay"""
    _stage("selfplay", config, run_dir, set)


@_common
def aggregate(config: str | None = None, run_dir: str = ".", set: list | None = None) -> None:
    """Take new games into shuffled training chunks. Example: controller.py aggregate"""
    _stage("aggregate", config, run_dir, set)


@_common
def train(config: str | None = None, run_dir: str = ".", set: list | None = None) -> None:
    """Train on the window of recent games and export a model. Example: controller.py train"""
    _stage("train", config, run_dir, set)


@_common
@argh.arg("--json", help="print JSON for programs")
def validate(config: str | None = None, run_dir: str = ".", set: list | None = None, json: bool = False) -> None:
    """Measure the latest weights on games kept out of training. Example: controller.py validate"""
    paths, configuration = open_run(config, run_dir, set)
    resolve_model("latest", paths)
    from alphago_zero.network import validate as measure  # not before mistakes were found

    figures = measure(paths, configuration)
    lines = (f"{name:16} {value:.4f}" for name, value in figures.items())
    print(json_format.dumps(figures) if json else "\n".join(lines))


@_common
@argh.arg(
    "player_a",
    help="path, name or version number of a model, best, latest or shipped, with @READOUTS if you like; "
    "raw:MODEL; random; uct:PLAYOUTS; gtp:COMMAND; human",
)
@argh.arg("player_b", help="likewise")
@argh.arg("--json", help="print JSON for programs")
@argh.arg("--games", type=int, help="how many; colours alternate, and each opening is played with both")
@argh.arg("--readouts", type=int, help="simulations a move, for models that do not say their own")
@argh.arg("--seed", type=int, help="another one gives other openings; default: the configuration's")
@argh.arg("--early-stop", help="end once the rest cannot change whether A scores above evaluation.threshold")
def evaluate(
    player_a: str,
    player_b: str,
    games: int | None = None,
    readouts: int | None = None,
    seed: int | None = None,
    early_stop: bool = False,
    config: str | None = None,
    run_dir: str = ".",
    set: list | None = None,
    json: bool = False,
) -> None:
    """Play a match of any two players. Example: controller.py evaluate best "gtp:gnugo --mode gtp" --games 100"""
    import tqdm

    from alphago_zero.arena import match_folder, play_match, save_result
    from alphago_zero.players import parse_player

    paths, configuration = open_run(config, run_dir, set)
    settings = configuration.evaluation
    readouts = settings.readouts if readouts is None else readouts
    games = settings.games if games is None else games
    if games < 1 or readouts < 1:
        raise ConfigError(f"a match needs at least one game and one readout, not {games} and {readouts}")
    a, b = (parse_player(word, paths, readouts) for word in (player_a, player_b))
    folder = match_folder(paths.data / "sgf" / "evaluate", a, b)
    played = []
    silent = True if "human" in (a.kind, b.kind) else None  # None: a bar on a terminal only
    with tqdm.tqdm(total=games, desc="evaluate", unit="game", disable=silent) as progress:

        def on_game(result, game) -> None:
            played.append(game)
            if silent:
                logging.info("Game %d: %s", len(played), ", ".join(filter(None, (game.result, game.reason))))
            progress.set_postfix_str(f"{result.wins_a} : {result.wins_b}", refresh=False)
            progress.update()

        result = play_match(
            a,
            b,
            configuration,
            games=games,
            seed=configuration.seed if seed is None else seed,
            threshold=settings.threshold if early_stop else None,
            sgf_folder=folder,
            on_game=on_game,
        )
    save_result(folder, result, played)
    logging.info("%s; games and result: %s", result.details(), folder)
    print(json_format.dumps(result.to_dict()) if json else result)


@_common
@argh.arg("model", nargs="?", help="path, name, version number, best, latest or shipped; default: best, else shipped")
@argh.arg("--readouts", type=int, help="simulations a move, at most")
@argh.arg("--seconds", type=float, help="time a move, at most")
@argh.arg("--ponder", help="think in the opponent's time, too")
@argh.arg("--resign-threshold", type=float, help="resign below this value, -1 to 1; -1: never")
def gtp(
    model: str | None,
    readouts: int | None = None,
    seconds: float | None = None,
    ponder: bool = False,
    resign_threshold: float | None = None,
    config: str | None = None,
    run_dir: str = ".",
    set: list | None = None,
) -> None:
    """Be an engine for Go programs, by the Go Text Protocol. Example: controller.py gtp best --seconds 5"""
    from alphago_zero.gtp import play_gtp

    threshold = [] if resign_threshold is None else [f"selfplay.resign_threshold={resign_threshold}"]
    paths, configuration = open_run(config, run_dir, [*(set or []), *threshold])
    if readouts is not None and readouts < 1:
        raise ConfigError(f"--readouts must be at least 1, not {readouts}")
    if seconds is not None and not 0 < seconds < 1e7:
        raise ConfigError(f"--seconds must be more than 0, not {seconds}")
    prefix = resolve_model(model, paths) if model else default_model(paths)
    play_gtp(prefix, configuration, readouts=readouts, seconds=seconds, ponder=ponder)


@_common
@argh.arg("--json", help="print JSON for programs")
def status(config: str | None = None, run_dir: str = ".", set: list | None = None, json: bool = False) -> None:
    """Where a run stands. Example: controller.py status --run-dir runs/first"""
    from alphago_zero.status import describe, read_status

    paths, configuration = open_run(config, run_dir, set)
    if not paths.root.is_dir():
        raise ModelError(f"no run directory {paths.root}")
    figures = read_status(paths, configuration)
    print(json_format.dumps(figures) if json else describe(figures))


@_common
@argh.arg("--models", help="every:N, or a list like 0,10,best; default: a dozen, evenly spread")
@argh.arg(
    "--anchor",
    action="append",
    help="a fixed player (as often as needed; the first is 0); default: random, uct:1000, GNU Go level 1 and 10",
)
@argh.arg("--games", type=int, help="until the ladder has so many; default: 30 a player")
@argh.arg("--readouts", type=int, help="simulations a move of the models")
@argh.arg("--minutes", type=float, help="begin no round of games after so long")
@argh.arg("--json", help="print JSON for programs")
def ladder(
    models: str | None = None,
    anchor: list | None = None,
    games: int | None = None,
    readouts: int | None = None,
    minutes: float | None = None,
    config: str | None = None,
    run_dir: str = ".",
    set: list | None = None,
    json: bool = False,
) -> None:
    """Rate a run's models and fixed anchors by a tournament. Example: controller.py ladder --minutes 60"""
    import dataclasses

    import tqdm

    from alphago_zero.ladder import choose_players, play_ladder, standings, table, write_results

    paths, configuration = open_run(config, run_dir, set)
    readouts = configuration.evaluation.readouts if readouts is None else readouts
    specs = choose_players(paths, models, anchor, readouts)
    games = 30 * len(specs) if games is None else games
    if games < 0 or readouts < 1:
        raise ConfigError(f"--games and --readouts must not be {games} and {readouts}")
    with tqdm.tqdm(total=games, desc="ladder", unit="game", disable=None) as progress:
        on_game = lambda total: progress.update(total - progress.n)  # noqa: E731
        play_ladder(specs, paths, configuration, games=games, minutes=minutes, on_game=on_game)
    places = standings(paths, [spec.label for spec in specs])
    logging.info("%s", " ".join(map(str, write_results(paths, places))))
    print(json_format.dumps([dataclasses.asdict(place) for place in places]) if json else table(places))


@_common
@argh.arg("games", nargs="+", help="SGF files")
@argh.arg("--model", help="path, name, version number, best, latest or shipped; default: best, else shipped")
@argh.arg("--readouts", type=int, help="simulations at every position")
@argh.arg("--json", help="print JSON for programs")
def analyze(
    *games: str,
    model: str | None = None,
    readouts: int = 200,
    config: str | None = None,
    run_dir: str = ".",
    set: list | None = None,
    json: bool = False,
) -> None:
    """Write a copy of each game with win rates, better moves and mistakes. Example: controller.py analyze GAME.sgf"""
    from alphago_zero.analysis import analyze_files

    paths, configuration = open_run(config, run_dir, set)
    if readouts < 1:
        raise ConfigError(f"--readouts must be at least 1, not {readouts}")
    prefix = resolve_model(model, paths) if model else default_model(paths)
    for summary in analyze_files(games, prefix, configuration, readouts=readouts):
        line = json_format.dumps(summary) if json else "{file}: {mistakes} mistakes, {sgf}, {picture}".format(**summary)
        print(line, flush=True)


@_common
@argh.arg("model", help="path, name, version number, best or latest")
def quantize(model: str, config: str | None = None, run_dir: str = ".", set: list | None = None) -> None:
    """Make a model's int8 version, as training does by itself. Example: controller.py quantize best"""
    from alphago_zero.quantization import example_positions, quantize_model

    paths, _ = open_run(config, run_dir, set)
    prefix = resolve_model(model, paths)
    made = quantize_model(prefix, *example_positions(paths, load_model_info(prefix).rules))
    print(f"{prefix}: p differs by {made.p_error:.4f}, v by {made.v_error:.4f}{'' if made.is_good else ': too much'}")


@_common
@argh.arg("model", nargs="?", default=None, help="path, name, version number, best, latest or shipped; default: best")
@argh.arg("--port", type=int, help="0: any that is free")
@argh.arg("--address", help="where to listen; any other than loopback asks every browser for a token")
@argh.arg("--token", help="the token to ask for; default: a new one, printed, if --address is not loopback")
@argh.arg("--open", help="open the page in a browser")
def serve(
    model: str | None,
    port: int = 8361,
    address: str = "127.0.0.1",
    token: str | None = None,
    open: bool = False,
    config: str | None = None,
    run_dir: str = ".",
    set: list | None = None,
) -> None:
    """Play, review games and watch a run learn, in a browser. Example: controller.py serve best --run-dir runs/first"""
    import webbrowser

    from alphago_zero.web.server import serve as serve_page

    def tell(url: str) -> None:
        print(url, flush=True)
        if open:
            webbrowser.open(url)

    paths, configuration = open_run(config, run_dir, set)
    serve_page(paths, configuration, model, address=address, port=port, token=token, on_ready=tell)


COMMANDS = [
    *(initialize_random_model, selfplay, aggregate, train, validate, evaluate, status),
    *(gtp, analyze, ladder, quantize, serve),
]


class Parser(argh.ArghParser):
    """Tells a mistake on the command line in one line, as all others are told."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (--help says more)\n")


NAMES = argh.assembling.NameMappingPolicy.BY_NAME_IF_HAS_DEFAULT  # arguments with a default are options


def main(arguments: list | None = None) -> None:
    parser = Parser(description="The stages of a run, matches, and what to do with a model.")
    parser.add_commands(COMMANDS, name_mapping_policy=NAMES)
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        parser.error(f"which command? {', '.join(command.__name__.replace('_', '-') for command in COMMANDS)}")
    run_safely(lambda: parser.dispatch(arguments))


def run_safely(command: Callable[[], None], when_stopped: str = "what was finished is kept") -> None:
    """Run a command; what goes wrong is told in one line, and by the exit code."""
    python_logging.basicConfig(format="%(message)s", level=python_logging.INFO, stream=sys.stderr)
    logging.set_verbosity(logging.INFO)
    program = Path(sys.argv[0]).name
    try:
        command()
    except (UserError, ImportError) as error:
        logging.error("%s: %s", program, error)
        sys.exit(2)
    except Failure as error:
        logging.error("%s: %s", program, error)
        sys.exit(1)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            hint = "the disk is full; make room and start the same command again, nothing is lost"
        else:
            hint = error.strerror or str(error)
        logging.error("%s", f"{program}: {error.filename or ''}: {hint}".replace(": : ", ": "))
        sys.exit(2 if isinstance(error, PermissionError) else 1)
    except Exception:  # a fault of the program: the run's log has it, too
        logging.exception("%s: unexpected", program)
        sys.exit(1)
    except KeyboardInterrupt:
        print(file=sys.stderr)  # the terminal shows ^C
        logging.info("%s: stopped; %s", program, when_stopped)
        sys.exit(130)


if __name__ == "__main__":
    main()
