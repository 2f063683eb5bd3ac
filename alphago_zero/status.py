"""`controller.py status`: where a run stands, read from its files alone, without TensorFlow."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.loop import games_wanted, is_running
from alphago_zero.model import list_models, load_model_info
from alphago_zero.preprocessing import read_ledger, window
from alphago_zero.runlog import elo_curve, read_generations
from alphago_zero.workers import finished_games

_NEXT = {
    "initialize": "then self-play",
    "selfplay": "then the games are aggregated, and a model is trained",
    "train": "then validation and the match with the best model",
    "evaluate": "then self-play by the winner",
}


def read_status(paths: RunPaths, config: Config, running: bool | None = None) -> dict:
    """All figures of `status --json`. Whether the run is at work is asked of its lock, unless it is given."""
    models = [prefix.name for prefix in list_models(paths)]
    decisions = read_generations(paths)
    decided = {line["model"] for line in decisions}
    ledger = read_ledger(paths)
    games = len(finished_games(paths))
    in_window = window(ledger, config.training)
    newest = load_model_info(paths.models / models[-1]) if models else None
    generation = newest.version if newest else 0
    wanted = games_wanted(paths, config, newest, games) if newest else config.selfplay.games
    if not models:
        stage = "initialize"
    elif generation > 0 and models[-1] not in decided:
        stage = "evaluate"
    elif games < wanted:
        stage = "selfplay"
    else:
        stage = "train"
    return {
        "generation": generation,
        "stage": stage,
        "games": games,
        "games_wanted": wanted,
        "games_per_generation": config.selfplay.games,
        "positions": sum(chunk.positions for chunk in ledger),
        "window_games": sum(len(chunk.games) for chunk in in_window),
        "window_positions": sum(chunk.positions for chunk in in_window),
        "models": models,
        "best": paths.best.read_text(encoding="utf-8", errors="replace").strip() if paths.best.is_file() else None,
        "elo": elo_curve(decisions),
        "gates": [
            {"model": line["model"], "promoted": line["promoted"], "match": line.get("match")} for line in decisions
        ],
        "latest": decisions[-1] if decisions else None,
        "running": is_running(paths) if running is None else running,
        "hours": round(sum(seconds(line) for line in decisions) / 3600, 2),
        "cpu_hours": round(sum(line.get("cpu_s", 0) for line in decisions) / 3600, 2),
        "disk_mb": round(sum(map(disk_use, (paths.models, paths.estimator, paths.data, paths.logs))) / 1e6, 1),
    }


def disk_use(folder: Path) -> int:
    """Bytes of all files below `folder`; a run that is at work may rename and delete them meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


def seconds(generation: dict) -> float:
    """Wall time that a generation took."""
    return sum(generation.get(stage, 0) for stage in ("selfplay_s", "train_s", "evaluate_s"))


def describe(figures: dict) -> str:
    """The same for people."""
    if not figures["models"]:
        return "Nothing here yet: python train.py begins a run."
    latest = figures["latest"] or {}
    now = "at work" if figures["running"] else "stopped; train.py --run-dir goes on"
    lines = [
        f"run         {now}; {figures['hours']} hours so far, {figures['cpu_hours']} of CPU time",
        f"generation  {figures['generation']}, {'now' if figures['running'] else 'next'}: {figures['stage']}"
        f" ({_NEXT[figures['stage']]})",
        f"games       {figures['games']} of {figures['games_wanted']} for this generation",
        f"positions   {figures['positions']}, in the window {figures['window_positions']}"
        f" of {figures['window_games']} games",
        f"best        {figures['best']}",
        f"latest      {figures['models'][-1]}",
    ]
    if figures["elo"]:
        lines.append(f"Elo         {figures['elo'][-1]['elo']} over random weights, by the gate's matches")
    if latest:
        lines.append(f"games last  {latest['length']:.0f} moves, Black wins {100 * latest['black_wins']:.0f} %")
        if "evals_per_s" in latest:
            lines.append(f"rate        {latest['evals_per_s']} evaluations/s, {latest['moves_per_s']} moves/s")
        for name in ("training", "validation"):
            losses = latest.get(name) or {}
            if losses:
                told = ", ".join(f"{key} {value:.3f}" for key, value in losses.items() if not key.endswith("step"))
                lines.append(f"{name:11} {told}")
    for gate in figures["gates"][-5:]:
        match = gate["match"]
        score = f"{match['wins_a']} : {match['wins_b']}" if match else "no gate"
        lines.append(f"gate        {gate['model']}  {score}  {'promoted' if gate['promoted'] else 'refused'}")
    lines.append(f"disk        {figures['disk_mb']} MB")
    return "\n".join(lines)
