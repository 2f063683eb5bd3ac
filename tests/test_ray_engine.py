"""The loop over many machines: nothing lost or counted twice whoever is killed, and nobody drowns or runs ahead."""

import importlib.util
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_loop import ROOT, SMALLER, check_run, run

from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.loop import LoopAtOnce
from alphago_zero.mirror import Mirror, Sent, publication_order, publish
from alphago_zero.model import list_models, load_model_info
from alphago_zero.preprocessing import read_ledger
from alphago_zero.runlog import read_lines
from alphago_zero.status import read_status
from alphago_zero.workers import SelfplayPool, Usage, finished_games
from scripts.benchmark_ray import SimulatedCrew, SimulatedEngine, sample_games

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
OVERRIDES = ["game.board_size=5", "inference.precision=f32", "selfplay.parallel_games=8", "evaluation.games=8"]


@pytest.fixture(scope="module")
def samples():
    return sample_games(load_config(None, OVERRIDES))


def logged_games(paths):
    return [line["game"] for line in read_lines(paths.logs / "selfplay.jsonl")]


def test_a_thousand_actors_of_which_many_die_write_each_game_once(tmp_path, samples):
    paths, config = RunPaths(tmp_path), load_config(None, OVERRIDES)
    pool = SelfplayPool(paths, config, SimulatedCrew(1000, 0.5, samples, death=0.2))
    pool.play("000000-some-cod", 600, -1.0)
    assert sorted(logged_games(paths)) == sorted(finished_games(paths)) and pool.games >= 600
    again = SelfplayPool(paths, config, SimulatedCrew(1000, 0.5, samples))
    again.play("000000-some-cod", 700, -1.0)
    assert len(set(logged_games(paths))) == len(logged_games(paths)) >= 700


def test_a_worker_that_has_no_place_yet_is_given_no_games(tmp_path, samples):
    crew = SimulatedCrew(4, 50.0, samples)
    start = crew.start
    crew.start = lambda place, seed: start(place, seed) if place else Waiting()

    class Waiting:
        is_ready, playing, games, boards = False, False, set(), 8
        usage = Usage()

    pool = SelfplayPool(RunPaths(tmp_path), load_config(None, OVERRIDES), crew)
    pool.play("000000-some-cod", 100, -1.0)
    assert not Waiting.games and pool.games >= 100


@pytest.mark.parametrize("slow", ["self-play", "learner"])
def test_new_positions_and_steps_keep_their_ratio_whichever_side_is_faster(tmp_path, samples, slow):
    paths = RunPaths(tmp_path)
    config = load_config(None, [*OVERRIDES, "selfplay.games=60", "training.reuse=2", "training.batch_size=32"])
    engine = SimulatedEngine(paths, config, SimulatedCrew(10, 20.0, samples))
    most_ahead = 0
    learn = engine.learn

    def watched():
        nonlocal most_ahead
        version = load_model_info(list_models(paths)[-1]).version
        deadline = time.monotonic() + 60
        while slow == "learner" and engine.pool.games < 60 * (version + 2):  # it plays on while the learner learns
            assert time.monotonic() < deadline, "self-play idles"
            time.sleep(0.05)
        if slow == "learner":
            time.sleep(0.5)
        most_ahead = max(most_ahead, engine.pool.games - 60 * version)
        return learn()

    engine.learn = watched
    LoopAtOnce(paths, config, engine).run(generations=4)
    models = [load_model_info(prefix) for prefix in list_models(paths)]
    assert [model.version for model in models] == [0, 1, 2, 3, 4]
    for before, after in zip(models, models[1:]):
        assert after.positions > before.positions
        assert after.steps - before.steps == math.ceil(2 * (after.positions - before.positions) / 32)
        assert 45 <= after.games - before.games <= 70, "a generation's games, less those held out"
    assert most_ahead <= 60 * 2 + 2 * 10 * 3, "at most `ray.ahead` generations, and what was on its way"
    decisions = read_lines(paths.logs / "generations.jsonl")
    assert [line["model"] for line in decisions] == [model.name for model in models[1:]]
    assert [line["promoted"] for line in decisions] == [False, True, False, True]
    assert all(line["selfplay_s"] >= 0 and line["evals_per_s"] == 0 and line["moves_per_s"] > 0 for line in decisions)
    assert read_status(paths, config)["generation"] == 4


def test_what_fails_in_one_part_ends_the_run(tmp_path, samples):
    config = load_config(None, [*OVERRIDES, "selfplay.games=10"])
    engine = SimulatedEngine(RunPaths(tmp_path), config, SimulatedCrew(4, 50.0, samples))
    engine.validate = lambda newest, best: 1 / 0
    with pytest.raises(ZeroDivisionError):
        LoopAtOnce(RunPaths(tmp_path), config, engine).run()


def test_a_mirror_gets_what_changed_and_forgets_what_left_the_window(tmp_path):
    here, there = RunPaths(tmp_path / "here"), Mirror(tmp_path / "there")
    chunks = [here.chunks / name for name in ("1.zz", "2.zz", "ledger.jsonl")]
    here.chunks.mkdir(parents=True)
    for path in chunks:
        path.write_text("old")
    sent = Sent(here)
    parcels = list(sent.parcels(chunks))
    assert [len(parcel) for parcel in parcels] == [3] and not list(sent.parcels(chunks))
    there.receive(parcels[0])
    chunks[2].write_text("longer")
    ((name, data),) = next(sent.parcels(chunks)).items()
    assert (name, data) == ("data/training_chunks/ledger.jsonl", b"longer")
    there.forget_but(["data/training_chunks/2.zz"])
    assert [path.name for path in there.paths.chunks.iterdir()] == ["2.zz"]


def test_a_model_is_published_last_and_events_grow(tmp_path):
    names = ["models/1.json", "estimator_working_dir/checkpoint", "models/1.pb"]
    assert publication_order(names) == names[::-1]
    paths, name = RunPaths(tmp_path), "estimator_working_dir/events.out.tfevents.1"
    publish(paths, name, b"one")
    inode = (tmp_path / name).stat().st_ino
    publish(paths, name, b"one two")
    assert (tmp_path / name).read_bytes() == b"one two" and (tmp_path / name).stat().st_ino == inode


@pytest.mark.parametrize(
    "arguments, culprit",
    [(["--address", "127.0.0.1:1"], "127.0.0.1:1"), (["--address", "nowhere"], "HOST:PORT")],
)
@needs_ray
def test_a_cluster_that_does_not_answer_is_named_in_one_line(tmp_path, arguments, culprit):
    finished = run("train.py", "--engine", "ray", *arguments, "--run-dir", tmp_path)
    assert finished.returncode == 2
    assert culprit in finished.stderr.splitlines()[-1] and "Traceback" not in finished.stderr


def test_without_ray_one_line_says_how_to_get_it(tmp_path):
    program = "import sys; sys.modules['ray'] = None; from alphago_zero.train import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "--engine", "ray", "--run-dir", tmp_path]
    finished = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert finished.returncode == 2
    assert "pip install" in finished.stderr.splitlines()[-1] and "Traceback" not in finished.stderr


@needs_ray
def test_an_actor_keeps_the_models_that_it_used_last(tmp_path):
    from alphago_zero.ray_actors import keep_model

    for number in range(1, 10):
        best = keep_model(tmp_path, "000000-best.cafe", {".json": b"{}", ".pb": b"best"})
        challenger = keep_model(tmp_path, f"{number:06d}-new.0a1b", {".json": b"{}", ".pb": b"graph"})
        assert Path(f"{challenger}.pb").read_bytes() == b"graph" and challenger.name == f"{number:06d}-new"
        assert Path(f"{best}.pb").read_bytes() == b"best"
    assert len(list(tmp_path.iterdir())) == 4


@needs_ray
def test_a_model_that_finds_no_room_on_a_node_is_told(monkeypatch, tmp_path):
    from alphago_zero import ray_actors

    def full(*_):
        raise OSError(28, "No space left on device", "/scratch/model.pb")

    monkeypatch.setattr(ray_actors, "scratch_folder", lambda: tmp_path)
    monkeypatch.setattr(ray_actors, "keep_model", full)
    actor = ray_actors.SelfplayActor.__ray_metadata__.modified_class(load_config(None, OVERRIDES), [0])
    actor.tell("play", "000000-some-cod.cafe", {}, -1.0, 10)
    messages = [message for _ in range(2) for message in actor.hear(0.1)]
    assert [kind for kind, _, _ in messages] == ["ready", "error"] and "/scratch/model.pb" in messages[1][1]


@needs_ray
def test_folders_of_dead_actors_are_deleted(monkeypatch, tmp_path):
    from alphago_zero.ray_actors import scratch_folder

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = scratch_folder()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = mine.parent / f"{gone.pid}-abc"
    dead.mkdir()
    again = scratch_folder()
    assert mine.is_dir() and again.is_dir() and again != mine and not dead.exists()


@needs_ray
def test_simulated_actors_are_fed_and_gathered_through_ray():
    arguments = ["--actors", 40, "--hosts", 2, "--rate", 2, "--games", 40, "--generations", 2]
    finished = run("scripts/benchmark.py", "actors", "--ray", *arguments, "--json")
    assert finished.returncode == 0, finished.stderr
    figures = json.loads(finished.stdout)
    assert figures["transport"] == "ray" and figures["games"] >= 80
    assert figures["models"] == 3 and figures["promoted"] == 1


# --- real clusters ----------------------------------------------------------------------------------------------------


class TwoNodes:
    """Two Ray nodes on this computer, which die as computers do."""

    def __init__(self):
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0", PYTHONPATH=str(ROOT))
        from ray.cluster_utils import Cluster

        quick = {"health_check_period_ms": 1000, "health_check_failure_threshold": 10}
        settings = {"include_dashboard": False, "node_ip_address": "127.0.0.1", "num_cpus": 1}
        self._settings = settings
        self._cluster = Cluster(initialize_head=True, head_node_args={**settings, "_system_config": quick})
        self.address = self._cluster.address
        self.add_node()

    def add_node(self):
        self._node = self._cluster.add_node(**self._settings)

    def remove_node(self):
        self._cluster.remove_node(self._node, allow_graceful=False)
        self._cluster.wait_for_nodes(timeout=60)  # else a driver on the same computer might turn to the dead one

    def processes(self, title):
        """Ids of the worker processes of these nodes whose title begins so."""
        raylets = [node.all_processes["raylet"][0].process.pid for node in self._cluster.list_all_nodes()]
        return [pid for pid, parent, name in process_table() if parent in raylets and name.startswith(title)]

    def close(self):
        ours = self.processes("")
        self._cluster.shutdown()
        deadline = time.monotonic() + 20
        while any(Path(f"/proc/{pid}").exists() for pid in ours) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not [pid for pid in ours if Path(f"/proc/{pid}").exists()], "a process of Ray survived"


def process_table():
    """(id, parent's id, title) of all processes."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            yield int(folder.name), parent, (folder / "cmdline").read_bytes().decode(errors="replace")
        except (OSError, ValueError):
            continue


@pytest.fixture(scope="module")
def two_nodes():
    if not Path("/proc/self/stat").exists():
        pytest.skip("looks for processes in /proc")
    nodes = TwoNodes()
    yield nodes
    nodes.close()


def wait_until(condition, process, seconds=300):
    """Until it holds, or the process has ended."""
    deadline = time.monotonic() + seconds
    while not condition() and process.poll() is None:
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def start_driver(nodes, folder, generations, log):
    command = [
        sys.executable,
        ROOT / "train.py",
        "--config",
        ROOT / "configs/smoke.yaml",
        "--run-dir",
        folder,
        *SMALLER,
    ]
    command += ["--engine", "ray", "--address", nodes.address, "--generations", generations]
    return subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)


def kill_one(processes):
    for pid in processes[:1]:
        os.kill(pid, signal.SIGKILL)


@needs_ray
def test_a_run_on_two_nodes_ends_as_on_one_computer(two_nodes, tmp_path):
    paths = RunPaths(tmp_path / "run")
    with open(tmp_path / "log", "wb") as log:
        assert start_driver(two_nodes, paths.root, 2, log).wait(timeout=400) == 0, (tmp_path / "log").read_text()
    check_run(paths.root, 2)
    assert "Traceback" not in (tmp_path / "log").read_text()


@needs_ray
@pytest.mark.slow
def test_actors_a_node_the_learner_and_the_driver_are_killed_and_the_run_ends_as_any_other(two_nodes, tmp_path):
    paths = RunPaths(tmp_path / "run")
    with open(tmp_path / "log", "wb") as log:
        driver = start_driver(two_nodes, paths.root, 2, log)
        wait_until(lambda: len(finished_games(paths)) >= 5, driver)
        kill_one(two_nodes.processes("ray::SelfplayActor"))
        wait_until(lambda: two_nodes.processes("ray::StageActor"), driver)
        kill_one(two_nodes.processes("ray::StageActor"))  # the learner: nobody else is there yet
        wait_until(lambda: read_ledger(paths) and len(list_models(paths)) > 1, driver)
        two_nodes.remove_node()
        driver.kill()
        driver.wait()
        two_nodes.add_node()
        before = finished_games(paths)
        assert start_driver(two_nodes, paths.root, 2, log).wait(timeout=400) == 0, (tmp_path / "log").read_text()
    check_run(paths.root, 2)
    assert before <= finished_games(paths)
    text = (tmp_path / "log").read_text()
    assert "died; its" in text and "learner died" in text and "Traceback" not in text


@needs_ray
@pytest.mark.slow
def test_a_long_run_with_random_kills(two_nodes, tmp_path):
    luck, paths = random.Random(0), RunPaths(tmp_path / "run")

    def milestones():
        return len(list_models(paths)) + len(read_lines(paths.logs / "generations.jsonl"))

    with open(tmp_path / "log", "wb") as log:
        driver, a_node_died = start_driver(two_nodes, paths.root, 10, log), False
        while driver.poll() != 0:
            if driver.poll():  # Ray ends a driver without a word when the node dies to which it turned
                text = (tmp_path / "log").read_text()
                assert a_node_died and "train.py: " not in text, text
                driver, a_node_died = start_driver(two_nodes, paths.root, 10, log), False
            before = milestones()  # one death for each: a slow computer, too, gets further than to the next death
            wait_until(lambda before=before: milestones() > before, driver, seconds=900)
            time.sleep(luck.uniform(0, 5))
            victim = luck.choice(["ray::SelfplayActor", "ray::StageActor", "node", "driver", "ray::"])
            if victim == "node":
                two_nodes.remove_node()
                time.sleep(luck.uniform(0, 5))
                two_nodes.add_node()
                a_node_died = True
            elif victim == "driver" and driver.poll() is None:
                driver.kill()
                driver.wait()
                driver, a_node_died = start_driver(two_nodes, paths.root, 10, log), False
            else:
                kill_one(luck.sample(found, len(found)) if (found := two_nodes.processes(victim)) else [])
    check_run(paths.root, 10)
