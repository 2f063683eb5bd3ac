"""Networks in 8 bits: near to f32 or not used, made without a trace elsewhere, and checked when loaded."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.inference import load_evaluator
from alphago_zero.model import ModelError, graph_digest, load_model_info, model_file, save_model_info
from alphago_zero.network import initialize_random_model
from alphago_zero.quantization import (
    ensure_quantized,
    example_positions,
    int8_pays,
    load_quantization,
    quantize_model,
)
from alphago_zero.quiet_tensorflow import tf

ROOT = Path(__file__).resolve().parent.parent
CONFIG = load_config(None, ["game.board_size=5", "network.filters=16", "network.blocks=2", "network.value_hidden=32"])


def edit_weights(prefix, edit):
    """Change the constants of a model's graph: `edit` gets a dict of arrays by name."""
    graph = tf.compat.v1.GraphDef.FromString(model_file(prefix, ".pb").read_bytes())
    constants = {node.name: node for node in graph.node if node.op == "Const"}
    weights = {name: tf.make_ndarray(node.attr["value"].tensor).copy() for name, node in constants.items()}
    edit(weights)
    for name, node in constants.items():
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(weights[name]))
    data = graph.SerializeToString(deterministic=True)
    model_file(prefix, ".pb").write_bytes(data)
    save_model_info(prefix, dataclasses.replace(load_model_info(prefix), graph_digest=graph_digest(data)))


def sharpen(weights):
    """Random weights say next to nothing: heads of a network that has opinions."""
    weights["MatMul/b"] *= 10
    weights["MatMul_2/b"] *= 5


def spoil(weights):
    """The same function in f32, but in one channel within the first block numbers are ten thousand times as large.

    Activations of a layer share one scale in 8 bits, so that nothing is left of its other channels.
    """
    sharpen(weights)
    weights["Conv2D_1/filter"][..., 0] *= 1e4
    weights["add_1/y"][0] *= 1e4
    weights["Conv2D_2/filter"][:, :, 0] /= 1e4


def make_model(folder, edit):
    paths = RunPaths(folder)
    prefix = initialize_random_model(paths, CONFIG)
    edit_weights(prefix, edit)
    return paths, prefix


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    paths, prefix = make_model(tmp_path_factory.mktemp("good"), sharpen)
    home = tmp_path_factory.mktemp("home")
    program = (
        "import sys; from alphago_zero.constants import RunPaths; from alphago_zero.config import load_config\n"
        "from alphago_zero.quantization import ensure_quantized\n"
        "assert __name__ == '__main__'; config = load_config(None, ['game.board_size=5', 'inference.precision=int8'])\n"
        "ensure_quantized(RunPaths(sys.argv[1]), config, sys.argv[2])\n"
        "assert not {'nncf', 'tensorflow'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-c", program, str(paths.root), str(prefix)]
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == ""
    return paths, prefix, home


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory):
    paths, prefix = make_model(tmp_path_factory.mktemp("spoiled"), spoil)
    quantize_model(prefix, *example_positions(paths, CONFIG.game))
    return prefix


def errors(prefix, planes, precision):
    exact, other = (load_evaluator(prefix, len(planes), precision=name) for name in ("f32", precision))
    (p, v), (exact_p, exact_v) = other.evaluate(planes), exact.evaluate(planes)
    return np.abs(p - exact_p).sum(axis=1).mean() / 2, np.abs(v - exact_v).mean(), other.description


def test_int8_is_near_to_f32_and_says_how_near(good):
    paths, prefix, _ = good
    planes = example_positions(paths, CONFIG.game)[1]
    p_error, v_error, description = errors(prefix, planes, "int8")
    made = load_quantization(prefix)
    assert description == "openvino int8"
    assert 0 < made.p_error < 0.04 and 0 < made.v_error < 0.05 and made.is_good
    assert p_error == pytest.approx(made.p_error, rel=0.2) and v_error == pytest.approx(made.v_error, rel=0.2)


def test_auto_takes_int8_where_it_pays(good):
    assert load_evaluator(good[1], 4).description.endswith("int8") == int8_pays()


def test_making_it_leaves_nothing_elsewhere(good):
    _, prefix, home = good
    assert not [path for path in home.rglob("*") if "numba" not in str(path)]
    made = {path.name.partition(".")[2] for path in prefix.parent.glob(f"{prefix.name}.int8*")}
    assert made == {"int8", "int8.xml", "int8.bin"}


def test_a_network_that_eight_bits_would_spoil_is_used_in_higher_precision(spoiled, caplog):
    made = load_quantization(spoiled)
    assert not made.is_good and made.p_error > 0.04
    caplog.clear()
    p_error, _, description = errors(spoiled, np.zeros((8, 5, 5, 17), np.uint8), "int8")
    assert not description.endswith("int8") and p_error < 0.01
    assert [record.getMessage() for record in caplog.records if "int8 would spoil it" in record.getMessage()]
    assert not load_evaluator(spoiled, 4).description.endswith("int8")


def test_int8_must_be_made_before_it_is_asked_for(tmp_path):
    prefix = initialize_random_model(RunPaths(tmp_path), CONFIG)
    with pytest.raises(ModelError, match="was not made in int8"):
        load_evaluator(prefix, 4, precision="int8")
    assert not load_evaluator(prefix, 4).description.endswith("int8")


@pytest.mark.parametrize("suffix", [".int8.xml", ".int8.bin", ".int8"])
def test_damage_is_found(good, tmp_path, suffix):
    _, prefix, _ = good
    for path in prefix.parent.glob(f"{prefix.name}.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    broken = model_file(tmp_path / prefix.name, suffix)
    broken.write_bytes(broken.read_bytes()[:-20] + b"x" * 19)
    with pytest.raises(ModelError, match="damaged"):
        load_evaluator(tmp_path / prefix.name, 4, precision="int8")


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"null", b"{}", b"[" * 100_000, {"p_error": None}, {"v_error": "0.01"}, {"more": 1}]
)
def test_what_says_nothing_about_8_bits_is_named(good, tmp_path, content):
    _, prefix, _ = good
    for suffix in (".json", ".pb", ".int8"):
        model_file(tmp_path / prefix.name, suffix).write_bytes(model_file(prefix, suffix).read_bytes())
    file = model_file(tmp_path / prefix.name, ".int8")
    if isinstance(content, dict):
        content = json.dumps({**json.loads(file.read_text()), **content}).encode()
    file.write_bytes(content)
    with pytest.raises(ModelError, match=f"{file} is damaged"):
        load_evaluator(tmp_path / prefix.name, 4)


def test_other_weights_need_another_version(good, tmp_path):
    _, prefix, _ = good
    for path in prefix.parent.glob(f"{prefix.name}.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    description = json.loads(model_file(tmp_path / prefix.name, ".json").read_text())
    model_file(tmp_path / prefix.name, ".json").write_text(json.dumps({**description, "graph_digest": "other"}))
    assert load_quantization(tmp_path / prefix.name) is None


def test_nothing_is_made_where_another_precision_is_asked_for(tmp_path):
    paths = RunPaths(tmp_path)
    prefix = initialize_random_model(paths, CONFIG)
    config = dataclasses.replace(CONFIG, inference=dataclasses.replace(CONFIG.inference, precision="f32"))
    ensure_quantized(paths, config, prefix)
    assert load_quantization(prefix) is None


def test_positions_are_of_different_games_and_all_stages(tmp_path):
    calibration, measure = example_positions(RunPaths(tmp_path), CONFIG.game)
    assert calibration.shape == measure.shape == (300, 5, 5, 17)
    stones = calibration[..., :2].sum(axis=(1, 2, 3))
    assert stones.min() == 0 and stones.max() > 12
    assert not np.array_equal(calibration, measure)
