"""What a run writes down about itself, as JSON lines, and what can be read from it.

    logs/selfplay.jsonl      a line a game (`selfplay._statistics`)
    logs/generations.jsonl   a line for every model that was trained: its losses, its match, what it cost
In: games and figures of the stages. Out: means, the resignation threshold, Elo, the table for people, and warnings.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from pathlib import Path

import numpy as np

from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.selfplay import calibrate_resignation

_RECENT_GAMES = 1000  # whose figures set the resignation threshold
_NEWEST_BYTES = 8_000_000  # of the games' log, at some 250 a game


def selfplay_log(paths: RunPaths) -> Path:
    return paths.logs / "selfplay.jsonl"


def generations_log(paths: RunPaths) -> Path:
    return paths.logs / "generations.jsonl"


def read_lines(path: Path, key: str | None = None, newest_bytes: int | None = None) -> list:
    """The objects of a JSON lines file that have this key, of all of it or of its newest part.

    A line that a kill cut short, or that somebody else wrote, is left out.
    """
    if not path.exists():
        return []
    with open(path, "rb") as file:
        if newest_bytes is not None:
            file.seek(max(0, file.seek(0, os.SEEK_END) - newest_bytes))
        text = file.read().decode("utf-8", errors="replace")
    lines = []
    for line in text.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            lines.append(json.loads(line))
    return [line for line in lines if isinstance(line, dict) and (key is None or key in line)]


def read_games(paths: RunPaths) -> list:
    """The lines of the newest games of self-play: tens of thousands of them, however long a run is."""
    return read_lines(selfplay_log(paths), "may_resign", newest_bytes=_NEWEST_BYTES)


def read_generations(paths: RunPaths) -> list:
    """The lines of all generations on which there is a verdict."""
    return read_lines(generations_log(paths), "model")


def append_line(path: Path, values: dict) -> None:
    append_lines(path, [values])


def append_lines(path: Path, lines: list) -> None:
    """Add lines and bring them to the disk. What a kill left of the line before is closed off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+") as file:
        torn = False
        if file.tell():
            file.seek(-1, os.SEEK_END)
            torn = file.read(1) != b"\n"
        file.write(("\n" * torn + "".join(json.dumps(values) + "\n" for values in lines)).encode())
        file.flush()
        os.fsync(file.fileno())


def resignation_threshold(paths: RunPaths, config: Config) -> tuple:
    """Set from the newest games that were played to their end (paper: fewer than 5 % false positives)."""
    games = [game for game in read_games(paths) if not game["may_resign"]][-_RECENT_GAMES:]
    lows = [(game["winner_low"], game["loser_low"]) for game in games if game["result"] != "0"]
    settings = config.selfplay
    return calibrate_resignation(lows, settings.resign_false_positives, settings.resign_threshold)


def summary(games: list) -> dict:
    """Means over the lines of these games."""

    def mean(values) -> float:
        values = [value for value in values if value is not None]
        return round(float(np.mean(values)), 4) if values else 0.0

    return {
        "length": mean(game["length"] for game in games),
        "pass_rate": mean(game["passes"] / max(game["length"], 1) for game in games),
        "first_pass": mean(game["first_pass"] for game in games),
        "resigned": mean(game["result"].endswith("R") for game in games),
        "black_wins": mean(game["result"].startswith("B") for game in games),
        "pi_entropy": mean(game["pi_entropy"] for game in games),
        "p_entropy": mean(game["p_entropy"] for game in games),
        "value_error": mean(game["value_error"] for game in games),
    }


def elo_curve(generations: list) -> list:
    """Elo of the best player after each gate, from its matches with its predecessors; random weights are 0.

    A match tells at most so much: half a game is added to either side, so that 20 : 0 is not infinity.
    """
    elo, curve = 0.0, []
    for line in generations:
        match = line.get("match")
        if match and line["promoted"]:
            won, lost = match["wins_a"] + match["draws"] / 2 + 0.5, match["wins_b"] + match["draws"] / 2 + 0.5
            elo += 400 * math.log10(won / lost)
        curve.append({"model": line["model"], "elo": round(elo)})
    return curve


def table(generations: list, rows: int = 5) -> str:
    """The newest generations, a row each."""
    lines = [f"{'model':>26} {'games':>7} {'moves':>5} {'Black':>5} {'policy':>7} {'value':>6} {'gate':>12} {'Elo':>5}"]
    for line, point in list(zip(generations, elo_curve(generations)))[-rows:]:
        losses, match = line.get("validation") or line.get("training") or {}, line.get("match")
        verdict = f"{match['wins_a']}:{match['wins_b']} {'won' if line['promoted'] else 'lost'}" if match else "off"
        lines.append(
            f"{line['model']:>26} {line['games']:7d} {line['length']:5.0f} {100 * line['black_wins']:4.0f}% "
            f"{losses.get('policy_loss', math.nan):7.3f} {losses.get('value_loss', math.nan):6.3f} "
            f"{verdict:>12} {point['elo'] if match else '':>5}"
        )
    return "\n".join(lines)


def warnings(line: dict) -> list:
    """What looks like a collapse in the figures of a generation, its likely cause, and what to try."""
    found = []
    if not line["length"]:  # no game was played: the network learned from those of another run
        return found
    if line["pass_rate"] > 0.15:
        found.append(
            f"{100 * line['pass_rate']:.0f} % of all moves are passes: the players may have learned to pass at once; "
            "look at a game, and try selfplay.no_pass_before=70 or more readouts"
        )
    if not 0.1 <= line["black_wins"] <= 0.9:
        found.append(
            f"Black wins {100 * line['black_wins']:.0f} % of the games: the value learns only the colour; "
            "try selfplay.no_pass_before=70 or another game.komi in a new run"
        )
    if line["length"] < 15:
        found.append(f"games last {line['length']:.0f} moves: look at one; try selfplay.no_pass_before=70")
    if line["pi_entropy"] < 0.2:
        found.append(
            f"the entropy of pi is {line['pi_entropy']:.2f}: self-play explores nothing; "
            "try a higher search.noise_fraction or selfplay.temperature_moves"
        )
    return found
