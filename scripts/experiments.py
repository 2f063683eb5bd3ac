#!/usr/bin/env python
"""`python scripts/experiments.py FOLDER [NAME ...]`: what is each idea worth on this machine?

In: names of experiments (none: all). Every one is a short run from random weights, with the same seed as the others and
one thing changed. Out: FOLDER/<name>, a run each, and FOLDER/results.jsonl: the newest model that was there within the
budget of CPU time, its games and its score against that of `base`, and against a fixed opponent. What is there already
is not done again. The table for docs/learning.md goes to stdout.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import argh

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from alphago_zero.constants import RunPaths  # noqa: E402
from alphago_zero.runlog import append_line, read_generations, read_lines  # noqa: E402

BASE = "base"
EXPERIMENTS = {  # what is set otherwise than in configs/fast.yaml
    BASE: (),
    "puct": ("search.algorithm=puct", "selfplay.no_pass_before=70"),
    "no ownership": ("network.ownership=false",),
    "no zero heads": ("network.zero_heads=false",),
    "early pass": ("selfplay.no_pass_before=0",),
    "16 readouts": ("search.readouts=16",),
    "64 readouts": ("search.readouts=64",),
    "16 actions": ("search.gumbel_actions=16",),
    "scale 1": ("search.gumbel_scale=1.0",),
    "reuse 1": ("training.reuse=1.0",),
    "reuse 4": ("training.reuse=4.0",),
    "resign": ("selfplay.resign_disabled=0.1",),
    "playout cap": ("search.readouts=64", "selfplay.full_search_share=0.25", "selfplay.fast_readouts=16"),
    "no average": ("training.average=0.0",),
    "gate": ("evaluation.gate=true",),
    "64x5": ("network.filters=64", "network.blocks=5"),
}
ANCHOR = "uct:1000"


@argh.arg("names", nargs="*", help=", ".join(EXPERIMENTS))
@argh.arg("--minutes", help="wall time of a run; it ends after the generation in which they are over")
@argh.arg("--cpu-minutes", help="CPU time after which a model is too late")
@argh.arg("--games", help="of a match with the base's model, 100 readouts a move")
@argh.arg("--anchor-games", help=f"of a match with {ANCHOR}")
def experiments(
    folder: str,
    names: list[str],
    minutes: float = 7.0,
    cpu_minutes: float = 12.0,
    games: int = 200,
    anchor_games: int = 40,
) -> None:
    """Run experiments, the base first, and print the table."""
    unknown = set(names) - set(EXPERIMENTS)
    if unknown:
        sys.exit(f"experiments.py: no experiment {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
    root = Path(folder).resolve()
    results = root / "results.jsonl"
    for name in dict.fromkeys([BASE, *(names or EXPERIMENTS)]):
        if name not in {line["name"] for line in read_lines(results)}:
            append_line(results, _experiment(root, name, minutes, cpu_minutes, games, anchor_games))
    print(table(read_lines(results)))


def _experiment(folder: Path, name: str, minutes: float, cpu_minutes: float, games: int, anchor_games: int) -> dict:
    paths = RunPaths(folder / name.replace(" ", "-"))
    settings = [word for override in EXPERIMENTS[name] for word in ("--set", override)]
    options = ["--config", "configs/fast.yaml", *settings, "--hours", f"{minutes / 60:.4f}"]
    _run("train.py", *options, "--run-dir", str(paths.root))
    model, history = newest_within(read_generations(paths), 60 * cpu_minutes)
    line = {
        "name": name,
        "command": shlex.join(["train.py", *options]),
        "model": str((paths.models / model["model"]).relative_to(folder)),  # so the folder may be moved
        "cpu_minutes": round(sum(generation["cpu_s"] for generation in history) / 60, 1),
        **{key: model[key] for key in ("games", "steps", "length", "pass_rate", "black_wins", "pi_entropy")},
        "anchor": _match(paths, paths.models / model["model"], ANCHOR, anchor_games),
    }
    if name != BASE:
        (base,) = (line for line in read_lines(folder / "results.jsonl") if line["name"] == BASE)
        line["base"] = _match(paths, paths.models / model["model"], str(folder / base["model"]), games)
    return line


def newest_within(generations: list, cpu_seconds: float) -> tuple:
    """The line of the newest model that was there after so much CPU time, and all lines up to it."""
    history, spent = generations[:1], generations[0]["cpu_s"]
    for line in generations[1:]:
        spent += line["cpu_s"]
        if spent > cpu_seconds:
            break
        history.append(line)
    return history[-1], history


def _match(paths: RunPaths, a: Path, b: str, games: int) -> dict:
    options = ["--games", str(games), "--readouts", "100", "--run-dir", str(paths.root), "--json"]
    result = json.loads(_run("controller.py", "evaluate", str(a), b, *options))
    return {key: result[key] for key in ("wins_a", "wins_b", "draws", "interval")}


def _run(*command: str) -> str:
    print("$", shlex.join(command), file=sys.stderr)
    return subprocess.run([sys.executable, *command], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def table(lines: list) -> str:
    """For docs/learning.md."""
    columns = ("experiment", "set", "CPU minutes", "games", "moves", "passes", "Black", "entropy", f": {BASE}", "95 %")
    rows = [(*columns, f": {ANCHOR}"), ("---",) * (len(columns) + 1)]
    for line in lines:
        match, anchor = line.get("base"), line["anchor"]
        low, high = match["interval"] if match else (0, 0)
        rows.append(
            (
                line["name"],
                " ".join(f"`{word}`" for word in EXPERIMENTS[line["name"]]),
                line["cpu_minutes"],
                line["games"],
                round(line["length"]),
                f"{100 * line['pass_rate']:.0f} %",
                f"{100 * line['black_wins']:.0f} %",
                f"{line['pi_entropy']:.2f}",
                f"{match['wins_a']} : {match['wins_b']}" if match else "",
                f"{100 * low:.0f} to {100 * high:.0f}" if match else "",
                f"{anchor['wins_a']} : {anchor['wins_b']}",
            )
        )
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


if __name__ == "__main__":
    argh.dispatch_command(experiments)
