#!/usr/bin/env python
"""`python scripts/pack_run.py RUN FOLDER`: copy what a run needs to go on elsewhere, a few megabytes.

Games stay behind: the window fills again with new ones. To go on, copy FOLDER to a new run directory and start
`train.py --run-dir` on it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import argh
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from alphago_zero.constants import RunPaths  # noqa: E402
from alphago_zero.features import extract_features  # noqa: E402
from alphago_zero.go import BoardState  # noqa: E402
from alphago_zero.growth import origin_path  # noqa: E402
from alphago_zero.inference import load_evaluator  # noqa: E402
from alphago_zero.ladder import ladder_log  # noqa: E402
from alphago_zero.model import SUFFIXES, list_models, load_model_info, model_file, resolve_model  # noqa: E402
from alphago_zero.preprocessing import ledger_path  # noqa: E402
from alphago_zero.runlog import generations_log, selfplay_log  # noqa: E402
from alphago_zero.symmetries import COUNT, apply_to_policy  # noqa: E402
from alphago_zero.workers import finished_games, games_taken_in  # noqa: E402

_OPENINGS = 8  # models whose view of the empty board is kept
_GAMES = 1000  # newest lines of the games' log: they set the resignation threshold


def pack(run: str, folder: str) -> None:
    """Copy models (the newest and the best), the newest checkpoint, the logs and the ledger of RUN to FOLDER."""
    paths, target = RunPaths(run), Path(folder)
    opening = _opening(paths)
    shutil.rmtree(target, ignore_errors=True)

    def copy(path: Path) -> None:
        if path.exists():
            destination = target / path.relative_to(paths.root)
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, destination)

    for prefix in {list_models(paths)[-1], resolve_model("best", paths)}:
        for file in (*(model_file(prefix, suffix) for suffix in SUFFIXES), *paths.models.glob(f"{prefix.name}.int8*")):
            copy(file)
    checkpoint = (paths.estimator / "checkpoint").read_text(encoding="utf-8").split('"')[1]
    for name in ("checkpoint", *(f"{checkpoint}{suffix}" for suffix in SUFFIXES[:2])):
        copy(paths.estimator / name)
    (target / "estimator_working_dir/checkpoint").write_text(
        f'model_checkpoint_path: "{checkpoint}"\nall_model_checkpoint_paths: "{checkpoint}"\n', encoding="utf-8"
    )
    for path in (paths.root / "config.json", origin_path(paths), paths.best, ledger_path(paths), paths.spent):
        copy(path)
    for path in (generations_log(paths), ladder_log(paths)):
        copy(path)
    lines = selfplay_log(paths).read_text(encoding="utf-8").splitlines()[-_GAMES:]
    (target / "logs/selfplay.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    # The ledger tells which games were learned from. The others (held out, or not yet taken in) are not played again.
    left_behind = sorted(finished_games(paths) - games_taken_in(paths))
    (target / paths.left_behind.name).write_text(json.dumps(left_behind) + "\n", encoding="utf-8")
    _opening_path(RunPaths(target)).write_text(json.dumps(opening), encoding="utf-8")
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(json.dumps({"folder": str(target), "megabytes": round(size / 1e6, 2)}))


def _opening_path(paths: RunPaths) -> Path:
    return paths.root / "opening.json"


def _opening(paths: RunPaths) -> list:
    """What some of the run's models think of the empty board, those included that were left on another computer."""
    kept = json.loads(_opening_path(paths).read_text(encoding="utf-8")) if _opening_path(paths).exists() else []
    models = {load_model_info(prefix).version: prefix for prefix in list_models(paths)}
    known = {thought["version"]: thought for thought in kept}
    versions = np.array(sorted({*models, *known}))
    wanted = np.geomspace(1, versions[-1] + 1, min(_OPENINGS, len(versions))) - 1
    chosen = {int(versions[np.abs(versions - version).argmin()]) for version in wanted}
    return [known.get(version) or _thought(models[version]) for version in sorted(chosen)]


def _thought(prefix: Path) -> dict:
    """p and v on the empty board, as means over the 8 symmetries."""
    info = load_model_info(prefix)
    (p,), (v,) = load_evaluator(prefix, 1).evaluate(extract_features(BoardState(info.rules))[None])
    views = [apply_to_policy(p, symmetry) for symmetry in range(COUNT)]  # of a board that is its own mirror image
    p = [round(float(share), 4) for share in np.mean(views, axis=0)]
    return {"version": info.version, "games": info.games, "p": p, "v": round(float(v), 3)}


if __name__ == "__main__":
    argh.dispatch_command(pack)
