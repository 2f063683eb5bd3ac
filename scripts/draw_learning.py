#!/usr/bin/env python
"""`python scripts/draw_learning.py`: the pictures and the table of docs/learning.md, from the files kept in docs/runs.

In: docs/runs/<name>, as `scripts/pack_run.py` leaves them. Out: docs/images/elo.svg (Elo of all runs and their anchors
on one scale), curves.svg (how well the network foretells moves and outcomes), opening.svg (where it would begin a
game, generation after generation), and on stdout the ratings as Markdown.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import argh
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from alphago_zero.constants import RunPaths  # noqa: E402
from alphago_zero.growth import origin_path  # noqa: E402
from alphago_zero.ladder import ANCHORS, count_wins, ladder_log, short_name  # noqa: E402
from alphago_zero.ratings import rate  # noqa: E402
from alphago_zero.runlog import generations_log, read_generations, read_lines  # noqa: E402

_COLORS = {"fast": "#c8501e", "large": "#8a1c4a", "default": "#2f6db3"}


def draw(runs: str = "docs/runs", images: str = "docs/images") -> None:
    """Draw all pictures anew."""
    folders = [folder for folder in sorted(Path(ROOT, runs).iterdir()) if generations_log(RunPaths(folder)).exists()]
    histories = {folder.name: _history(folder) for folder in folders}
    target = Path(ROOT, images)
    target.mkdir(parents=True, exist_ok=True)
    places = _ratings(folders)
    _draw_elo(target / "elo.svg", places, histories)
    _draw_curves(target / "curves.svg", histories)
    for folder in folders:
        if (folder / "opening.json").exists():
            _draw_opening(target / f"opening-{folder.name}.svg", folder)
    print(_table(places, histories))


def _history(folder: Path) -> list:
    """The generations of a run, with the CPU hours until then (those of the run whose games it began with included)."""
    lines = read_generations(RunPaths(folder))
    before = sum(line["cpu_s"] for line in read_lines(origin_path(RunPaths(folder))))
    hours = (before + np.cumsum([line["cpu_s"] for line in lines])) / 3600
    return [{**line, "cpu_hours": hour} for line, hour in zip(lines, hours)]


def _ratings(folders: list) -> list:
    """(run or None, player, Elo, margin, games) of everybody in the ladders of all runs, on one scale."""
    lines = []
    for folder in folders:
        for line in read_lines(ladder_log(RunPaths(folder))):
            lines.append({**line, "a": _label(folder.name, line["a"]), "b": _label(folder.name, line["b"])})
    labels = list(dict.fromkeys([ANCHORS[0], *(line[side] for line in lines for side in "ab")]))
    wins = count_wins(lines, labels)
    ratings = rate(wins, labels.index(_zero(labels)))
    games = (wins + wins.T).sum(axis=1)
    return [
        (*label.rpartition(" ")[::2], float(elo), float(margin), int(round(number)))
        if label.split(" ")[0] in {folder.name for folder in folders}
        else ("", label, float(elo), float(margin), int(round(number)))
        for label, elo, margin, number in zip(labels, ratings.elo, ratings.margin, games)
    ]


def _zero(labels: list) -> str:
    """Who is 0 on the scale: the strongest anchor, to which most of what one asks is near."""
    return next(label for label in reversed(ANCHORS) if label in labels)


def _label(run: str, player: str) -> str:
    """Models of different runs may have the same name: the run's stands before it."""
    return f"{run} {player}" if player[:6].isdecimal() or player.startswith("raw:") else player


def _draw_elo(path: Path, places: list, histories: dict) -> None:
    axes, save = _axes(path, (8, 4.6))
    for run, history in histories.items():
        hours = {line["model"]: line["cpu_hours"] for line in history}
        hours.update({player.partition("@")[0]: 0.0 for _, player, *_ in places if player.startswith("000000-")})
        for prefix, style in (("", "-"), ("raw:", ":")):
            points = sorted(
                (hours[name], elo, margin)
                for of_run, player, elo, margin, _ in places
                if of_run == run
                and player.startswith("raw:") == bool(prefix)
                and (name := player.removeprefix("raw:").partition("@")[0]) in hours
            )
            if points:
                x, y, error = zip(*points)
                label = f"{run}.yaml" + (", without search" if prefix else "")
                color = _COLORS.get(run)
                axes.errorbar(x, y, error, fmt="o" + style, ms=3, lw=1.3, elinewidth=0.6, label=label, color=color)
    anchors = sorted((elo, short_name(player)) for run, player, elo, *_ in places if not run)
    for k, (elo, name) in enumerate(anchors):
        axes.axhline(elo, color="0.6", lw=0.8, ls="--")
        side = "bottom" if k % 2 else "top"  # so that two neighbours can be read
        axes.annotate(f" {name}", (1.0, elo), xycoords=("axes fraction", "data"), fontsize=8, va=side)
    axes.set_xlabel("CPU hours (of one core)")
    axes.set_ylabel(f"Elo ({short_name(_zero([player for _, player, *_ in places]))}: 0)")
    axes.legend(loc="lower right", fontsize=8)
    save()


def _draw_curves(path: Path, histories: dict) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    panels = (
        ("validation", "policy_accuracy", "best move foretold"),
        ("validation", "value_loss", "$(z - v)^2$"),
        (None, "length", "moves a game"),
        (None, "pi_entropy", "entropy of the search's $\\pi$"),
    )
    for axes, (part, key, title) in zip(figure.subplots(1, len(panels)), panels):
        for run, history in histories.items():
            points = [
                (line["cpu_hours"], (line.get(part) or {}).get(key) if part else line.get(key)) for line in history
            ]
            points = [point for point in points if point[1] is not None]
            axes.plot(*zip(*points), lw=1.3, label=f"{run}.yaml", color=_COLORS.get(run))
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("CPU hours", fontsize=8)
        axes.grid(alpha=0.2)
        axes.tick_params(labelsize=7)
    figure.axes[0].legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})


def _draw_opening(path: Path, folder: Path) -> None:
    """p on the empty board as warmth, a small board for each model."""
    from matplotlib.figure import Figure

    models = json.loads((folder / "opening.json").read_text(encoding="utf-8"))
    figure = Figure(figsize=(1.55 * len(models), 2.0), layout="constrained")
    for axes, model in zip(np.atleast_1d(figure.subplots(1, len(models))), models):
        p = np.array(model["p"][:-1])
        size = int(np.sqrt(len(p)))
        axes.imshow(p.reshape(size, size), cmap="YlOrBr", vmin=0, vmax=max(p.max(), 0.05))
        axes.set_xticks(range(size), "ABCDEFGHJKLMNOPQRST"[:size], fontsize=4)
        axes.set_yticks(range(size), range(size, 0, -1), fontsize=4)
        axes.tick_params(length=0)
        axes.grid(color="0.5", lw=0.3)
        axes.set_title(f"generation {model['version']}\n{model['games']} games, v = {model['v']:+.2f}", fontsize=6)
    figure.savefig(path, metadata={"Date": None})


def _axes(path: Path, size: tuple):
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.grid(alpha=0.2)
    return axes, lambda: figure.savefig(path, metadata={"Date": None})


def _table(places: list, histories: dict) -> str:
    rows = ["| player | CPU hours | Elo | 95 % | games |", "|---|---|---|---|---|"]
    for run, player, elo, margin, games in sorted(places, key=lambda place: -place[2]):
        hours = {line["model"]: f"{line['cpu_hours']:.2f}" for line in histories.get(run, ())}
        name = player.removeprefix("raw:").partition("@")[0]
        who = f"{run}: {player}" if run else short_name(player)
        rows.append(
            f"| {who} | {hours.get(name, '')} | {elo:.0f} | {f'+-{margin:.0f}' if margin else 'fixed'} | {games} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    argh.dispatch_command(draw)
