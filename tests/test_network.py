"""The network is the paper's, learns what it is shown, and survives being killed while it learns."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from alphago_zero import network as networks
from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.go import BoardState
from alphago_zero.inference import load_evaluator
from alphago_zero.model import ModelError, list_models, load_model_info, model_file, promote, resolve_model
from alphago_zero.network import (
    PolicyValueNetwork,
    export_latest_checkpoint_model,
    initialize_random_model,
    latest_step,
    model_fn,
    next_target_step,
    train,
    validate,
)
from alphago_zero.preprocessing import aggregate, write_game
from alphago_zero.quiet_tensorflow import tf
from alphago_zero.records import RecordError, make_examples

v1 = tf.compat.v1
SMALL = ["game.board_size=5", "network.filters=8", "network.blocks=1", "network.value_hidden=16"]
CONFIG = load_config(None, [*SMALL, "training.batch_size=32", "training.checkpoint_steps=10", "training.precision=f32"])


def random_positions(count, size=5, seed=0, ownership=False):
    """Examples whose planes are noise: each has its own best move and outcome, which only memory can tell."""
    rng = np.random.default_rng(seed)
    planes = rng.integers(0, 2, (count, size, size, 17)).astype(np.uint8)
    planes[..., -1] = rng.integers(0, 2, (count, 1, 1))
    pi = np.eye(size * size + 1, dtype=np.float32)[rng.integers(size * size + 1, size=count)]
    owners = rng.integers(-1, 2, (count, size * size)).astype(np.int8) if ownership else None
    return planes, pi, rng.choice([-1.0, 1.0], count).astype(np.float32), owners


def build(config, size, mode=tf.estimator.ModeKeys.TRAIN):
    """The graph of a network, and its variables by name."""
    graph = tf.Graph()
    with graph.as_default():
        v1.train.create_global_step()
        planes = v1.placeholder(tf.uint8, [None, size, size, 17])
        labels = {
            "pi": v1.placeholder(tf.float32, [None, size * size + 1]),
            "z": v1.placeholder(tf.float32, [None]),
            "ownership": v1.placeholder(tf.int8, [None, size * size]),
        }
        spec = model_fn({"planes": planes}, labels, mode, {"network": config.network, "training": config.training})
        trainable = {variable.op.name: variable for variable in v1.trainable_variables()}
    return graph, trainable, spec, {"planes": planes, **labels}


@pytest.mark.parametrize("heads, trunks", [("dual", 1), ("separate", 2)])
@pytest.mark.parametrize("blocks, size", [(19, 19), (39, 19), (19, 9)])
def test_the_papers_networks_have_as_many_parameters_as_the_formula_says(blocks, size, heads, trunks):
    config = load_config(None, [f"network.blocks={blocks}", "network.filters=256", f"network.heads={heads}"])
    _, trainable, _, _ = build(config, size, tf.estimator.ModeKeys.EVAL)
    points, batch_norm = size * size, lambda filters: 2 * filters  # gamma and beta
    first = 9 * 17 * 256 + batch_norm(256)
    block = 2 * (9 * 256 * 256 + batch_norm(256))
    policy = 256 * 2 + batch_norm(2) + 2 * points * (points + 1) + points + 1
    value = 256 * 1 + batch_norm(1) + points * 256 + 256 + 256 * 1 + 1
    assert sum(int(np.prod(variable.shape)) for variable in trainable.values()) == (
        trunks * (first + blocks * block) + policy + value
    )


def loss_of(config, batch):
    """The loss in evaluation mode with the initial weights, and those weights."""
    size = batch["planes"].shape[1]
    graph, trainable, spec, inputs = build(config, size, tf.estimator.ModeKeys.EVAL)
    with graph.as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        session.run(v1.global_variables_initializer())
        return session.run((spec.loss, trainable), {inputs[name]: batch[name] for name in inputs})


def test_the_loss_is_the_papers(tmp_path):
    """l = (z - v)^2 - pi . log p + c ||theta||^2, recomputed from the exported network's own p and v."""
    paths = RunPaths(tmp_path)
    prefix = initialize_random_model(paths, CONFIG)
    planes, pi, z, _ = random_positions(6)
    write_game(paths.holdout(prefix.name) / "1.tfrecord.zz", planes, pi, z)
    figures = validate(paths, CONFIG)
    p, v = load_evaluator(prefix, 6, backend="tensorflow").evaluate(planes)
    reader = tf.train.load_checkpoint(str(prefix))
    names = [name for name in reader.get_variable_to_shape_map() if name.endswith("/kernel")]
    theta = sum(float((reader.get_tensor(name).astype(np.float64) ** 2).sum()) for name in names)
    expected = ((z - v) ** 2).mean() - (pi * np.log(p)).sum(1).mean() + 1e-4 * theta
    assert figures["loss"] == pytest.approx(expected, rel=1e-4)
    assert figures["policy_accuracy"] == pytest.approx((p.argmax(1) == pi.argmax(1)).mean())
    assert figures["value_accuracy"] == pytest.approx((np.sign(v) == z).mean())
    assert figures["policy_entropy"] == pytest.approx(-(p * np.log(p)).sum(1).mean(), rel=1e-4)


def test_the_value_term_has_its_weight():
    planes, pi, z, _ = random_positions(4)
    batch = {"planes": planes, "pi": pi, "z": z, "ownership": np.full((4, 25), 127, np.int8)}
    losses = {}
    for weight in (0.0, 0.01, 1.0):
        training = dataclasses.replace(CONFIG.training, value_weight=weight, l2=0.0)
        network = dataclasses.replace(CONFIG.network, zero_heads=True)
        losses[weight], _ = loss_of(dataclasses.replace(CONFIG, training=training, network=network), batch)
    assert losses[0.0] == pytest.approx(np.log(26), abs=1e-5)  # p is uniform
    assert losses[0.01] - losses[0.0] == pytest.approx(0.01, abs=1e-5)  # v is zero
    assert losses[1.0] - losses[0.0] == pytest.approx(1.0, abs=1e-5)


def test_unknown_ownership_costs_nothing():
    planes, pi, z, owners = random_positions(4, ownership=True)
    network = dataclasses.replace(CONFIG.network, ownership=True, zero_heads=True)
    config = dataclasses.replace(CONFIG, network=network, training=dataclasses.replace(CONFIG.training, l2=0.0))
    owners[2:] = 127
    loss, _ = loss_of(config, {"planes": planes, "pi": pi, "z": z, "ownership": owners})
    expected = np.log(26) + 1 + 1.5 * (owners[:2].astype(float) ** 2).sum() / (4 * 25)  # the head starts at 0
    assert loss == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("step, rate", [(0, 0.01), (9, 0.01), (10, 0.001), (19, 0.001), (20, 0.0001)])
def test_a_learning_rate_holds_from_its_step_on(step, rate):
    config = load_config(None, [*SMALL, "training.learning_rates=[[0, 0.01], [10, 0.001], [20, 0.0001]]"])
    graph, _, _, _ = build(config, 5)
    with graph.as_default(), v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(v1.assign(v1.train.get_global_step(), step))
        assert session.run(graph.get_tensor_by_name("figures/learning_rate:0")) == pytest.approx(rate)


def test_zero_heads_say_nothing_at_first(tmp_path):
    config = load_config(None, [*SMALL, "network.zero_heads=true"])
    prefix = initialize_random_model(RunPaths(tmp_path), config)
    p, v = load_evaluator(prefix, 4).evaluate(random_positions(4)[0])
    np.testing.assert_allclose(p, 1 / 26, rtol=1e-5)
    np.testing.assert_array_equal(v, 0)


@pytest.mark.parametrize(
    "settings",
    [
        [],
        pytest.param(["network.trunk=plain"], marks=pytest.mark.slow),
        pytest.param(["network.heads=separate"], marks=pytest.mark.slow),
    ],
)
def test_500_positions_are_learned_by_heart(tmp_path, settings):
    config = load_config(
        None,
        [*SMALL, "network.filters=32", "network.batch_norm_momentum=0.9", "training.batch_size=100"]
        + ["training.l2=0", "training.checkpoint_steps=10000", "training.learning_rates=[[0, 0.02], [500, 0.002]]"]
        + settings,
    )
    paths = RunPaths(tmp_path)
    prefix = initialize_random_model(paths, config)
    planes, pi, z, _ = random_positions(500)
    networks.training_batches, turned = upright_batches, networks.training_batches
    try:
        train(paths, config, 600, make_examples(planes, pi, z))
    finally:
        networks.training_batches = turned
    write_game(paths.holdout(prefix.name) / "1.tfrecord.zz", planes, pi, z)
    figures = validate(paths, config)
    assert figures["policy_accuracy"] > 0.95
    assert figures["value_loss"] < 0.05


def upright_batches(examples, batch_size, rng):
    """Batches without symmetries: noise that is turned is other noise."""
    from alphago_zero.preprocessing import make_batch

    while True:
        yield make_batch(rng.choice(examples, batch_size, replace=False), np.zeros(batch_size, np.int64))


def test_the_loop_of_a_run(tmp_path):
    """initialize, aggregate, train, validate, export; each a second time does nothing new."""
    paths = RunPaths(tmp_path)
    config = dataclasses.replace(CONFIG, network=dataclasses.replace(CONFIG.network, ownership=True))
    first = initialize_random_model(paths, config)
    assert initialize_random_model(paths, config) == first == resolve_model("best", paths)
    assert export_latest_checkpoint_model(paths, config) == first
    paths.best.unlink()  # killed before the promotion
    assert initialize_random_model(paths, config) == first == resolve_model("best", paths)
    for number in range(4):
        write_game(
            paths.selfplay(first.name) / f"{number}.tfrecord.zz", *random_positions(40, seed=number, ownership=True)
        )
    aggregate(paths, config, np.random.default_rng(0))
    assert next_target_step(paths, config) == 10  # 160 new positions, each to be seen twice, in batches of 32
    result = train(paths, config, 10)
    assert result.steps == 10 and result.figures["ownership_loss"] > 0
    assert train(paths, config, 10).steps == 0
    second = export_latest_checkpoint_model(paths, config)
    assert export_latest_checkpoint_model(paths, config) == second
    info = load_model_info(second)
    assert (info.version, info.parent, info.steps, info.games, info.positions) == (1, first.name, 10, 4, 160)
    assert next_target_step(paths, config) == 10
    assert [prefix.name for prefix in list_models(paths)] == [first.name, second.name]
    promote(paths, second.name)
    assert initialize_random_model(paths, config) == first and resolve_model("best", paths) == second
    tags = {
        value.tag
        for file in paths.estimator.glob("events.out.tfevents*")
        for event in v1.train.summary_iterator(str(file))
        for value in event.summary.value
    }
    assert tags >= {"total_loss", "policy_loss", "value_loss", "l2_loss", "ownership_loss", "policy_accuracy"}
    assert tags >= {"value_accuracy", "policy_entropy", "learning_rate", "step"}


def test_a_model_predicts_for_board_states(tmp_path):
    prefix = initialize_random_model(RunPaths(tmp_path), CONFIG)
    network = PolicyValueNetwork(prefix, batch_size=2)
    states = [BoardState(CONFIG.game)]
    for move in (12, 7, 8, 25):
        states.append(states[-1].play_move(move))
    p, v = network.predict_on_multiple_board_states(states)
    assert p.shape == (5, 26) and v.shape == (5,)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    single_p, single_v = network.predict_on_single_board_state(states[3])
    np.testing.assert_allclose(single_p, p[3], atol=1e-6)
    assert single_v == pytest.approx(v[3], abs=1e-6)


def test_a_model_is_the_running_mean_of_the_weights(tmp_path):
    paths, plain, config = RunPaths(tmp_path), CONFIG, load_config(None, [*SMALL, "training.average=0.9"])
    initialize_random_model(paths, config)
    examples = make_examples(*random_positions(64))
    name = "policy/moves/kernel"
    mean = networks._read_weights(networks._latest_checkpoint(paths))[name]
    for step in range(1, 4):
        train(paths, config, step, examples)
        values = networks._read_weights(networks._latest_checkpoint(paths))
        share = (1 + step) / (10 + step)  # at first the mean is over fewer steps
        mean = share * mean + (1 - share) * values[name]
        np.testing.assert_allclose(values[name + "/ExponentialMovingAverage"], mean, atol=1e-6)

    # What is validated and exported is the mean; training goes on from the weights themselves.
    write_game(paths.holdout("000000-x") / "0.tfrecord.zz", *random_positions(40))
    assert validate(paths, config)["policy_loss"] != validate(paths, plain)["policy_loss"]
    exported = networks._inference_graph(networks._latest_checkpoint(paths), config)
    assert values[name + "/ExponentialMovingAverage"].tobytes() in exported
    with pytest.raises(ModelError, match="training.average"):
        began_without = RunPaths(tmp_path / "other")
        initialize_random_model(began_without, plain)
        train(began_without, config, 1, examples)


LEARNER = """
import sys
from alphago_zero.constants import RunPaths
from alphago_zero.network import initialize_random_model, train
from alphago_zero.records import make_examples
from tests.test_network import CONFIG, random_positions
paths = RunPaths(sys.argv[1])
initialize_random_model(paths, CONFIG)
train(paths, CONFIG, int(sys.argv[2]), make_examples(*random_positions(100)))
"""


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_training_killed_goes_on_from_its_last_checkpoint_to_the_same_step(tmp_path):
    paths = RunPaths(tmp_path)
    root = os.path.dirname(os.path.dirname(__file__))
    environment = {**os.environ, "PYTHONPATH": root}
    learner = subprocess.Popen([sys.executable, "-c", LEARNER, str(tmp_path), "1000000"], env=environment)
    try:
        deadline = time.time() + 120
        while not list_models(paths) or latest_step(paths) < 30:
            assert learner.poll() is None and time.time() < deadline
            time.sleep(0.1)
    finally:
        learner.send_signal(signal.SIGKILL)
        learner.wait()
    step = latest_step(paths)
    assert step >= 30 and step % 10 == 0
    result = train(paths, CONFIG, step + 25, make_examples(*random_positions(100)))
    assert result.steps == 25
    assert latest_step(paths) == step + 25


def test_mistakes_are_told_in_one_clear_line(tmp_path):
    paths = RunPaths(tmp_path)
    examples = make_examples(*random_positions(40))
    with pytest.raises(ModelError, match="no checkpoint in .*initialize a random model first"):
        train(paths, CONFIG, 10, examples)
    initialize_random_model(paths, CONFIG)
    with pytest.raises(RecordError, match="nothing to train on"):
        train(paths, CONFIG, 10)
    with pytest.raises(RecordError, match="no games to validate on"):
        validate(paths, CONFIG)
    other = dataclasses.replace(CONFIG, network=dataclasses.replace(CONFIG.network, filters=9))
    with pytest.raises(ModelError, match="another network or board than .*000000-"):
        train(paths, other, 10, examples)


DAMAGE = {"truncated": lambda data: data[: len(data) // 2], "foreign": lambda data: b"(;GM[1])" * 99}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("file", ["model.ckpt-0.index", "model.ckpt-0.data-00000-of-00001", "checkpoint"])
def test_a_damaged_checkpoint_is_named_in_one_line_by_every_stage(tmp_path, file, damage):
    paths = RunPaths(tmp_path)
    prefix = initialize_random_model(paths, CONFIG)
    examples = random_positions(40)
    write_game(paths.holdout(prefix.name) / "00000001.tfrecord.zz", *examples)
    bad = paths.estimator / file
    bad.write_bytes(damage(bad.read_bytes()))
    stages = [lambda: train(paths, CONFIG, 10, make_examples(*examples)), lambda: validate(paths, CONFIG)]
    if file != "checkpoint":
        stages.append(lambda: networks._inference_graph(str(paths.estimator / "model.ckpt-0"), CONFIG))
    for stage in stages:
        with pytest.raises(ModelError, match=f"{paths.estimator}/.*damaged") as caught:
            stage()
        assert "\n" not in str(caught.value)


def test_a_damaged_checkpoint_of_a_model_is_named(tmp_path):
    paths = RunPaths(tmp_path)
    prefix = initialize_random_model(paths, CONFIG)
    write_game(paths.holdout(prefix.name) / "00000001.tfrecord.zz", *random_positions(40))
    validate(paths, CONFIG, prefix)
    model_file(prefix, ".data-00000-of-00001").write_bytes(b"half")
    with pytest.raises(ModelError, match=f"{prefix} is damaged"):
        validate(paths, CONFIG, prefix)


def test_an_export_killed_before_its_json_is_done_again(tmp_path):
    paths = RunPaths(tmp_path)
    prefix = initialize_random_model(paths, CONFIG)
    model_file(prefix, ".json").unlink()
    model_file(prefix, ".pb").write_bytes(b"half")
    assert initialize_random_model(paths, CONFIG) == prefix
    load_evaluator(prefix, 1)


def test_training_prints_nothing_where_there_is_no_terminal(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    command = [sys.executable, "-c", LEARNER, str(tmp_path), "3"]
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("", "")


def numpy_convolution(x, kernel):
    """[B, N, N, C] by [k, k, C, F], zeros around the board."""
    reach = kernel.shape[0] // 2
    padded = np.pad(x, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    size = x.shape[1]
    shifts = [(i, j) for i in range(kernel.shape[0]) for j in range(kernel.shape[0])]
    return sum(padded[:, i : i + size, j : j + size] @ kernel[i, j] for i, j in shifts)


def numpy_network(planes, weights, blocks, residual, trunks):
    """The paper's network, written down once more, without TensorFlow."""

    def convolution(x, name):
        y = numpy_convolution(x, weights[f"{name}/kernel"])
        mean, variance = weights[f"{name}/moving_mean"], weights[f"{name}/moving_variance"]
        return weights[f"{name}/gamma"] * (y - mean) / np.sqrt(variance + 1e-5) + weights[f"{name}/beta"]

    def dense(x, name):
        return x.reshape(len(x), -1) @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    def tower(name):
        x = np.maximum(convolution(planes.astype(float), f"{name}/first"), 0)
        for block in range(blocks):
            y = np.maximum(convolution(x, f"{name}/block{block:02d}/first"), 0)
            y = convolution(y, f"{name}/block{block:02d}/second")
            x = np.maximum(x + y if residual else y, 0)
        return x

    policy, value = tower(trunks[0]), tower(trunks[-1])
    logits = dense(np.maximum(convolution(policy, "policy/convolution"), 0), "policy/moves")
    hidden = np.maximum(dense(np.maximum(convolution(value, "value/convolution"), 0), "value/hidden"), 0)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True), np.tanh(dense(hidden, "value/outcome"))[:, 0]


@pytest.mark.parametrize("trunk", ["residual", "plain"])
@pytest.mark.parametrize("heads, trunks", [("dual", ["trunk"]), ("separate", ["policy_trunk", "value_trunk"])])
def test_the_network_computes_what_the_paper_says(tmp_path, trunk, heads, trunks):
    """All four networks of the paper's ablation, their running means and variances being anything."""
    config = load_config(None, [*SMALL, "network.blocks=2", f"network.trunk={trunk}", f"network.heads={heads}"])
    paths = RunPaths(tmp_path)
    initialize_random_model(paths, config)
    weights = networks._read_weights(str(paths.estimator / "model.ckpt-0"))
    rng = np.random.default_rng(0)
    for name, weight in weights.items():
        if name.rpartition("/")[2] in ("gamma", "beta", "moving_mean", "moving_variance", "bias"):
            weights[name] = rng.uniform(0.5, 1.5, weight.shape).astype(np.float32)
    assert weights["policy/convolution/kernel"].shape == (1, 1, 8, 2)
    assert weights["value/convolution/kernel"].shape == (1, 1, 8, 1)
    planes = random_positions(10)[0]
    expected = numpy_network(planes, weights, 2, trunk == "residual", trunks)
    with tf.Graph().as_default(), v1.Session() as session:
        layers = networks._FoldedLayers(config.network, weights.__getitem__)
        logits, value, _ = networks._forward(layers, tf.constant(planes), config.network)
        p, v = session.run((tf.nn.softmax(logits), value))
    np.testing.assert_allclose(p, expected[0], atol=1e-5)
    np.testing.assert_allclose(v, expected[1], atol=1e-5)


def test_a_step_is_sgd_with_momentum():
    """velocity = 0.9 velocity + gradient; weight = weight - rate velocity."""
    config = load_config(None, [*SMALL, "training.learning_rates=[[0, 0.05]]"])
    graph, trainable, spec, inputs = build(config, 5)
    planes, pi, z, _ = random_positions(16)
    feed = {inputs["planes"]: planes, inputs["pi"]: pi, inputs["z"]: z, inputs["ownership"]: np.zeros((16, 25))}
    with graph.as_default(), v1.Session() as session:
        gradients = dict(zip(trainable, v1.gradients(spec.loss, list(trainable.values()))))
        session.run(v1.global_variables_initializer())
        velocity = {name: 0.0 for name in trainable}
        for _ in range(3):
            weights, slopes = session.run((trainable, gradients), feed)
            session.run(spec.train_op, feed)
            after = session.run(trainable)
            for name in trainable:
                velocity[name] = 0.9 * velocity[name] + slopes[name]
                np.testing.assert_allclose(after[name], weights[name] - 0.05 * velocity[name], atol=1e-5)


def test_the_input_has_no_thread_that_tunes_it():
    """It sleeps for up to a minute at a time, and a session that ends waits for it."""
    batches = networks._dataset(lambda: iter(()), CONFIG.game.board_size)
    assert batches.options().autotune.enabled is False
