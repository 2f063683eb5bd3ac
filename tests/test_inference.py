"""Two runtimes say the same about the same position, one thread each, and tell nobody else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.features import extract_features
from alphago_zero.go import BoardState
from alphago_zero.inference import cpu_has_bf16, load_evaluator  # noqa: F401  (the former in a skipif)
from alphago_zero.model import ModelError, graph_digest, model_file

ROOT = Path(__file__).parent.parent
CONFIG = load_config(None, ["network.filters=16", "network.blocks=2", "training.batch_size=64"])


def game_positions(count, seed=0):
    """Planes of positions of random games, so that stones, captures and history are as they are in play."""
    rng = np.random.default_rng(seed)
    planes, state = [], BoardState()
    while len(planes) < count:
        planes.append(extract_features(state))
        state = state.play_move(int(rng.choice(np.flatnonzero(state.legal_moves())[:-1])))
        if state.move_number > 60:
            state = BoardState()
    return np.stack(planes)


@pytest.fixture(scope="module")
def trained_model(tmp_path_factory):
    """Some steps of training give batch norm other means and variances than it began with."""
    from alphago_zero.network import export_latest_checkpoint_model, initialize_random_model, train
    from alphago_zero.records import make_examples

    paths = RunPaths(tmp_path_factory.mktemp("run"))
    initialize_random_model(paths, CONFIG)
    planes, rng = game_positions(640), np.random.default_rng(1)
    pi = np.eye(82, dtype=np.float32)[rng.integers(82, size=640)]
    train(paths, CONFIG, 20, make_examples(planes, pi, rng.choice([-1.0, 1.0], 640).astype(np.float32)))
    return export_latest_checkpoint_model(paths, CONFIG)


POSITIONS = {
    "of games": game_positions(200, seed=7),
    "of noise": np.random.default_rng(2).integers(0, 2, (200, 9, 9, 17)).astype(np.uint8),
}


def differences(model, planes, precision):
    p, v = load_evaluator(model, 64, backend="tensorflow").evaluate(planes[:64])
    other_p, other_v = load_evaluator(model, 64, backend="openvino", precision=precision).evaluate(planes[:64])
    assert np.ptp(v) > 0.01 and np.ptp(p) > 0.001, "a network that says the same about everything proves nothing"
    return np.abs(p - other_p).max(), np.abs(v - other_v).max()


@pytest.mark.parametrize("planes", POSITIONS.values(), ids=POSITIONS)
def test_openvino_in_f32_agrees_with_tensorflow(trained_model, planes):
    p, v = differences(trained_model, planes, "f32")
    assert p < 1e-4 and v < 1e-4


@pytest.mark.parametrize("planes", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.skipif("not cpu_has_bf16()", reason="THIS CPU HAS NO BF16: its bound (p 0.01, v 0.03) IS NOT CHECKED HERE")
def test_openvino_in_bf16_stays_within_its_bound(trained_model, planes):
    p, v = differences(trained_model, planes, "bf16")
    assert p < 0.01 and v < 0.03


@pytest.mark.parametrize("planes", POSITIONS.values(), ids=POSITIONS)
def test_folded_batch_norm_says_what_the_trained_graph_says(trained_model, planes):
    """The exported constants against the layers with variables, in evaluation mode, from the same checkpoint."""
    from alphago_zero import network
    from alphago_zero.quiet_tensorflow import tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        layers = network._TrainableLayers(CONFIG.network, training=False)
        logits, value, _ = network._forward(layers, tf.constant(planes[:64]), CONFIG.network)
        v1.train.Saver().restore(session, str(trained_model))
        expected_p, expected_v = session.run((tf.nn.softmax(logits), value))
    p, v = load_evaluator(trained_model, 64, precision="f32").evaluate(planes[:64])
    np.testing.assert_allclose(p, expected_p, atol=1e-4)
    np.testing.assert_allclose(v, expected_v, atol=1e-4)


@pytest.mark.parametrize("backend", ["openvino", "tensorflow"])
def test_a_batch_is_its_positions_one_by_one(trained_model, backend):
    planes = POSITIONS["of games"][:8]
    evaluator = load_evaluator(trained_model, 8, backend=backend)
    p, v = evaluator.evaluate(planes)
    for k in range(8):
        single_p, single_v = evaluator.evaluate(planes[k : k + 1])
        np.testing.assert_allclose(single_p[0], p[k], atol=1e-6)
        np.testing.assert_allclose(single_v[0], v[k], atol=1e-6)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-5)
    assert (np.abs(v) <= 1).all()


@pytest.mark.parametrize("backend", ["openvino", "tensorflow"])
def test_what_a_runtime_cannot_do_is_told_in_one_line(trained_model, backend):
    with pytest.raises(ModelError, match=f"(?i){backend} .*not in int4") as caught:
        load_evaluator(trained_model, 1, backend=backend, precision="int4")
    assert "\n" not in str(caught.value)


def vouch_for(graph, trained_model, folder, **changes):
    """A model of any graph, whose description says that it is the right one."""
    prefix = folder / trained_model.name
    model_file(prefix, ".pb").write_bytes(graph)
    info = json.loads(model_file(trained_model, ".json").read_text())
    model_file(prefix, ".json").write_text(json.dumps({**info, "graph_digest": graph_digest(graph), **changes}))
    return prefix


@pytest.mark.parametrize("backend", ["openvino", "tensorflow"])
@pytest.mark.parametrize("graph", [b"", b"(;GM[1]SZ[9])" * 20], ids=["empty", "foreign"])
def test_a_graph_that_is_none_is_named_in_one_line(trained_model, tmp_path, graph, backend):
    """Even where its description vouches for it."""
    prefix = vouch_for(graph, trained_model, tmp_path)
    with pytest.raises(ModelError, match=f"{prefix}.pb is not a network") as caught:
        load_evaluator(prefix, 1, backend=backend)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("backend", ["openvino", "tensorflow"])
def test_a_graph_for_another_board_is_named_in_one_line(trained_model, tmp_path, backend):
    graph = model_file(trained_model, ".pb").read_bytes()
    prefix = vouch_for(graph, trained_model, tmp_path, rules={"board_size": 7})
    with pytest.raises(ModelError, match=f"{prefix}.pb is not a network") as caught:
        load_evaluator(prefix, 1, backend=backend)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("backend", ["openvino", "tensorflow"])
def test_a_graph_that_would_write_a_file_is_refused(trained_model, tmp_path, backend):
    from alphago_zero.quiet_tensorflow import tf

    victim = tmp_path / "victim"
    with tf.Graph().as_default() as graph:
        planes = tf.compat.v1.placeholder(tf.uint8, [None, 9, 9, 17], name="planes")
        with tf.control_dependencies([tf.io.write_file(str(victim), "taken over")]):
            tf.fill([tf.shape(planes)[0], 82], 1 / 82, name="policy")
        tf.zeros([tf.shape(planes)[0]], name="value")
    prefix = vouch_for(graph.as_graph_def().SerializeToString(), trained_model, tmp_path)
    with pytest.raises(ModelError, match=f"{prefix}.pb is not a network|WriteFile"):
        load_evaluator(prefix, 1, backend=backend).evaluate(np.zeros((1, 9, 9, 17), np.uint8))
    assert not victim.exists()


ALONE = """
import os, sys
from alphago_zero.inference import cpu_has_bf16, load_evaluator  # noqa: F401  (the former in a skipif)
import numpy as np
evaluator = load_evaluator(sys.argv[1], 4, backend="openvino")
evaluator.evaluate(np.zeros((4, 9, 9, 17), np.uint8))
children = os.popen(f"ps -o args= --ppid {os.getpid()}").read().splitlines()
print([child for child in children if "ps -o" not in child])
print([name for name in sys.modules if name.split(".")[0] == "tensorflow"])
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux")
def test_openvino_starts_no_process_writes_no_file_and_needs_no_tensorflow(trained_model, tmp_path):
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    before = sorted(path.name for path in trained_model.parent.iterdir())
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(ROOT)}
    environment.update(XDG_CACHE_HOME=str(home), XDG_CONFIG_HOME=str(home))
    command = [sys.executable, "-c", ALONE, str(trained_model)]
    run = subprocess.run(command, env=environment, cwd=here, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["[]", "[]"] and run.stderr == ""
    assert list(home.rglob("*")) == [] and list(here.rglob("*")) == []
    assert sorted(path.name for path in trained_model.parent.iterdir()) == before
