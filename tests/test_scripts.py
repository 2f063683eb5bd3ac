"""What the scripts print and draw, from files as the program leaves them."""

import subprocess
import sys
from pathlib import Path

from alphago_zero.runlog import append_line

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))


def run(script, *arguments):
    command = [sys.executable, str(ROOT / "scripts" / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_experiments_are_compared_at_the_same_cost():
    from experiments import newest_within

    generations = [{"model": k, "cpu_s": 50.0} for k in range(5)]
    assert newest_within(generations, 150.0) == (generations[2], generations[:3])
    assert newest_within(generations, 149.0) == (generations[1], generations[:2])
    assert newest_within(generations, 10.0) == (generations[0], generations[:1])


def test_every_experiment_is_a_configuration():
    from experiments import EXPERIMENTS

    from alphago_zero.config import load_config

    for overrides in EXPERIMENTS.values():
        config = load_config(ROOT / "configs/fast.yaml", overrides)
        assert not overrides or config != load_config(ROOT / "configs/fast.yaml")


def test_experiments_that_are_done_are_shown_and_not_done_again(tmp_path):
    line = {
        "cpu_minutes": 11.5,
        "games": 3000,
        "length": 104.6,
        "pass_rate": 0.07,
        "black_wins": 0.52,
        "pi_entropy": 1.5,
    }
    anchor = {"wins_a": 30, "wins_b": 10, "draws": 0, "interval": [0.59, 0.86]}
    match = {"wins_a": 120, "wins_b": 80, "draws": 0, "interval": [0.531, 0.665]}
    append_line(tmp_path / "results.jsonl", {**line, "name": "base", "anchor": anchor})
    append_line(tmp_path / "results.jsonl", {**line, "name": "reuse 1", "anchor": anchor, "base": match})
    shown = run("experiments.py", tmp_path, "reuse 1")
    *_, base, reuse = shown.stdout.splitlines()
    assert base == "| base |  | 11.5 | 3000 | 105 | 7 % | 52 % | 1.50 |  |  | 30 : 10 |"
    assert "| `training.reuse=1.0` |" in reuse and reuse.endswith("| 120 : 80 | 53 to 66 | 30 : 10 |")
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_an_unknown_experiment_is_named(tmp_path):
    refused = run("experiments.py", tmp_path, "no such")
    assert refused.returncode and "no such" in refused.stderr and "Traceback" not in refused.stderr


def test_a_game_is_drawn(tmp_path):
    picture = tmp_path / "game.svg"
    drawn = run("draw_game.py", ROOT / "docs/games/won-by-half-a-point.sgf", picture)
    assert drawn.returncode == 0, drawn.stderr
    assert "<svg" in picture.read_text()
