"""A ladder: a run's models and fixed anchors rated on one scale, by games chosen where they tell most.

In: players. Out: `logs/ladder.jsonl`, a line a game, only ever added to; from it ratings, a table and the curve of Elo
over generations, hours, CPU hours and games of self-play. The file is the state: a ladder that was stopped or killed
goes on by being started again, with more games or more players if you like.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
from absl import logging

from alphago_zero.arena import match_folder, play_match
from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.files import atomic_path, atomic_write_text
from alphago_zero.go import BLACK
from alphago_zero.gtp_client import find_program
from alphago_zero.match import MatchGame
from alphago_zero.model import list_models, load_model_info, resolve_model
from alphago_zero.players import PlayerError, PlayerSpec, common_rules, parse_player
from alphago_zero.ratings import Ratings, rate
from alphago_zero.runlog import append_line, read_generations, read_lines

GNU_GO = "gtp:gnugo --mode gtp --level {} --chinese-rules --positional-superko --forbid-suicide --capture-all-dead"
ANCHORS = ("random", "uct:1000", GNU_GO.format(1), GNU_GO.format(10))  # the first is 0 on the scale
_ROUND, _FIRST_ROUND = 24, 8  # games of one pair before all ratings are looked at again; of two who never met
_MODELS = 12  # of a run, if nobody says which
_STAGES = ("selfplay_s", "train_s", "evaluate_s")  # what a generation's wall time is made of


@dataclass(frozen=True)
class Standing:
    """A player's place on the ladder."""

    player: str
    elo: float
    margin: float  # 95 % interval: elo +- margin
    games: int
    score: float  # share of the points
    generation: int | None = None  # of a model of this run
    hours: float | None = None  # wall time that the run worked until it was there
    cpu_hours: float | None = None  # time of one core; on a shared machine it tells more
    selfplay_games: int | None = None


def ladder_log(paths: RunPaths) -> Path:
    return paths.logs / "ladder.jsonl"


def choose_players(paths: RunPaths, models: str | None, anchors: Sequence[str] | None, readouts: int) -> list:
    """Specs of anchors and models. `models`: "every:5" for each 5th, or a list "0,10,best"; None: a dozen."""
    if anchors is None:
        anchors = [word for word in ANCHORS if not word.startswith("gtp:") or find_program("gnugo")]
        if len(anchors) < len(ANCHORS):
            logging.warning("GNU Go is not installed: the ladder does without it")
    prefixes = _choose_models(paths, models)
    specs = [parse_player(word, paths, readouts) for word in anchors]
    specs += [PlayerSpec("model", f"{prefix.name}@{readouts}", prefix, readouts) for prefix in prefixes]
    unique = {spec.label: spec for spec in specs}
    if any(spec.kind == "human" for spec in specs):
        raise PlayerError("human: a ladder plays too many games for a person")
    if len(unique) < 2:
        raise PlayerError(f"a ladder needs two players: no model in {paths.models}, and {len(anchors)} anchor")
    return list(unique.values())


def _choose_models(paths: RunPaths, models: str | None) -> list[Path]:
    everything = list_models(paths)
    if models is None:
        chosen = np.unique(np.linspace(0, len(everything) - 1, min(_MODELS, len(everything))).round().astype(int))
        return [everything[k] for k in chosen]
    if models.startswith("every:"):
        step = models.partition(":")[2]
        if not step.isdecimal() or int(step) < 1:
            raise PlayerError(f"--models {models}: expected every:N, or a list of models")
        chosen = {*everything[:: int(step)], *everything[-1:]}
        return [prefix for prefix in everything if prefix in chosen]
    return [resolve_model(word.strip(), paths) for word in models.split(",") if word.strip()]


def play_ladder(
    specs: Sequence[PlayerSpec],
    paths: RunPaths,
    config: Config,
    *,
    games: int,
    minutes: float | None = None,
    on_game: Callable[[int], None] = lambda total: None,
) -> None:
    """Play rounds until the file has `games` games between these players, or the time is up (a round is finished)."""
    config = dataclasses.replace(config, game=common_rules(specs, config))
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    labels = [spec.label for spec in specs]
    while True:
        wins = count_wins(read_lines(ladder_log(paths), "points_a"), labels)
        total = int(round(wins.sum()))
        on_game(total)
        if total >= games or (deadline is not None and time.monotonic() >= deadline):
            return
        first, second = most_telling_pair(wins)
        a, b = specs[first], specs[second]

        def keep(result, game, a=a, b=b, total=total) -> None:
            append_line(ladder_log(paths), _line(a, b, game))
            on_game(total + result.games)

        met = wins[first, second] + wins[second, first] > 0
        play_match(
            a,
            b,
            config,
            games=min(_ROUND if met else _FIRST_ROUND, games - total),
            seed=config.seed + 1_000_003 * total,  # other openings in every round
            sgf_folder=match_folder(paths.data / "sgf" / "ladder", a, b),
            on_game=keep,
        )


def _line(a: PlayerSpec, b: PlayerSpec, game: MatchGame) -> dict:
    """A game as the file keeps it."""
    return {
        "a": a.label,
        "b": b.label,
        "points_a": game.points_a,
        "black": "a" if game.a_color == BLACK else "b",
        "result": game.result,
        "length": len(game.moves),
        "time": round(time.time()),
        **({"reason": game.reason} if game.reason else {}),
        **({"disputed": game.disputed} if game.disputed else {}),
    }


def count_wins(lines: Sequence[dict], labels: Sequence[str]) -> np.ndarray:
    """float [players, players]: points of i against j."""
    index = {label: k for k, label in enumerate(labels)}
    wins = np.zeros((len(labels), len(labels)))
    for line in lines:
        if line["a"] in index and line["b"] in index:
            i, j = index[line["a"]], index[line["b"]]
            wins[i, j] += line["points_a"]
            wins[j, i] += 1 - line["points_a"]
    return wins


def most_telling_pair(wins: np.ndarray) -> tuple[int, int]:
    """The pair whose next game tells most; of equal ones, the nearest neighbours."""
    information = rate(wins).information()
    pairs = [(i, j) for i in range(len(wins)) for j in range(i)]
    return max(pairs, key=lambda pair: (round(information[pair], 6), pair[1] - pair[0]))


# --- results ----------------------------------------------------------------------------------------------------------


def standings(paths: RunPaths, labels: Sequence[str]) -> list[Standing]:
    """All players asked for and all in the file, strongest first; the first of `labels` is 0."""
    lines = read_lines(ladder_log(paths), "points_a")
    known = [label for line in lines for label in (line["a"], line["b"])]
    everyone = list(dict.fromkeys([*labels, *known]))
    wins = count_wins(lines, everyone)
    ratings: Ratings = rate(wins)
    history = _history(paths)
    places = []
    for k, label in enumerate(everyone):
        played, won = wins[k].sum() + wins[:, k].sum(), wins[k].sum()
        score = won / played if played else 0.5
        figures = (float(ratings.elo[k]), float(ratings.margin[k]), int(round(played)), float(score))
        places.append(Standing(label, *figures, *history.get(label.partition("@")[0], (None,) * 4)))
    return sorted(places, key=lambda place: -place.elo)


def _history(paths: RunPaths) -> dict:
    """(generation, hours, CPU hours, games of self-play) of each model of the run, by name."""
    generations = {line["model"]: line for line in read_generations(paths)}
    history, seconds, cpu_seconds = {}, 0.0, 0.0
    for prefix in list_models(paths):
        info, line = load_model_info(prefix), generations.get(prefix.name)
        if line:
            seconds += sum(line.get(stage, 0) for stage in _STAGES)
            cpu_seconds += line.get("cpu_s", 0)
        is_timed = line is not None or info.version == 0
        hours = (seconds / 3600, cpu_seconds / 3600) if is_timed else (None, None)
        history[prefix.name] = (info.version, *hours, info.games)
    return history


def short_name(label: str) -> str:
    """
    >>> short_name(GNU_GO.format(10)), short_name("uct:1000")
    ('gnugo level 10', 'uct:1000')
    """
    if not label.startswith("gtp:"):
        return label
    words = label[4:].split()
    level = f" level {words[words.index('--level') + 1]}" if "--level" in words[:-1] else ""
    return Path(words[0]).name + level


def table(places: Sequence[Standing]) -> str:
    """For people."""
    width = max(len(short_name(place.player)) for place in places)
    lines = [f"{'player':{width}}  {'Elo':>6}  {'95 %':>6}  {'games':>5}  {'score':>6}"]
    for place in places:
        margin = f"+-{place.margin:.0f}" if place.margin else "fixed"
        name = short_name(place.player)
        lines.append(f"{name:{width}}  {place.elo:6.0f}  {margin:>6}  {place.games:5d}  {100 * place.score:5.1f}%")
    return "\n".join(lines)


def write_results(paths: RunPaths, places: Sequence[Standing]) -> list[Path]:
    """`logs/ladder.csv`, and the curve as `logs/ladder.png` and `logs/ladder.svg`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in dataclasses.fields(Standing)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(place) for place in places)
    files = [paths.logs / f"ladder.{suffix}" for suffix in ("csv", "png", "svg")]
    atomic_write_text(files[0], text.getvalue())
    for file in files[1:]:
        draw_curve(file, places)
    return files


def draw_curve(path: Path, places: Sequence[Standing]) -> None:
    """Elo of the run's models over generations, hours, CPU hours and games; the anchors are lines across."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 4.5), layout="constrained")
    models = [place for place in places if place.generation is not None and place.games]
    anchors = [place for place in places if place.generation is None and place.games]
    panels = (
        ("generation", "generation"),
        ("hours", "hours"),
        ("cpu_hours", "CPU hours (one core)"),
        ("selfplay_games", "games of self-play"),
    )
    for axes, (key, name) in zip(figure.subplots(1, len(panels), sharey=True), panels):
        for readouts in sorted(
            {place.player.partition("@")[2] for place in models}, key=lambda text: (len(text), text)
        ):
            curve = [place for place in models if place.player.partition("@")[2] == readouts]
            curve = sorted((p for p in curve if getattr(p, key) is not None), key=lambda place: getattr(place, key))
            x, y, error = ([getattr(place, field) for place in curve] for field in (key, "elo", "margin"))
            style = dict(marker="o", markersize=4, linewidth=1.2, elinewidth=0.7, capsize=2)
            axes.errorbar(x, y, error, label=f"{readouts} readouts", **style)
        for anchor in anchors:
            axes.axhline(anchor.elo, color="0.5", linestyle="--", linewidth=0.8)
            axes.annotate(
                short_name(anchor.player),
                (0.01, anchor.elo),
                xycoords=("axes fraction", "data"),
                fontsize=7,
                va="bottom",
            )
        axes.set_xlabel(name)
        axes.xaxis.get_major_locator().set_params(integer="hours" not in key)
        axes.grid(alpha=0.2)
    figure.axes[0].set_ylabel("Elo")
    if models:
        figure.axes[0].legend(fontsize=7, loc="lower right")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110, format=path.suffix[1:])
