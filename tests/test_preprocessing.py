"""Games become training data: exactly once, whatever is killed or damaged, and TensorFlow can read it."""

import collections
import dataclasses
import json
import os
import shutil
import signal
import zlib

import numpy as np
import pytest

from alphago_zero.config import TrainingConfig, load_config
from alphago_zero.constants import RunPaths
from alphago_zero.features import extract_features
from alphago_zero.go import BoardState
from alphago_zero.preprocessing import (
    Chunk,
    aggregate,
    game_to_bytes,
    ledger_path,
    load_holdout,
    load_window,
    make_batch,
    plain_batches,
    read_game,
    read_ledger,
    training_batches,
    window,
    write_game,
)
from alphago_zero.records import UNKNOWN, RecordError, make_examples, pack_planes, read_examples, unpack_planes
from alphago_zero.symmetries import apply_to_planes, apply_to_policy
from alphago_zero.workers import finished_games

SIZE = 5
CONFIG = load_config(None, [f"game.board_size={SIZE}", "training.chunk_examples=20", "training.window_games=100"])


def random_game(seed, positions=8, size=SIZE, ownership=True):
    """The examples of a game of random moves, all with z = its seed, so that they can be told apart."""
    rng = np.random.default_rng(seed)
    state = BoardState(CONFIG.game) if size == SIZE else BoardState()
    planes = []
    for _ in range(positions):
        planes.append(extract_features(state))
        state = state.play_move(int(rng.choice(np.flatnonzero(state.legal_moves())[:-1])))
    pi = rng.dirichlet(np.ones(size * size + 1), positions).astype(np.float32)
    owners = rng.integers(-1, 2, (positions, size * size)).astype(np.int8) if ownership else None
    return np.stack(planes), pi, np.full(positions, seed, np.float32), owners


def write_games(paths, seeds, model="000000-a-b"):
    for seed in seeds:
        write_game(paths.selfplay(model) / f"{seed:08d}.tfrecord.zz", *random_game(seed))


def games_in_chunks(paths):
    """How many examples of each game the chunks of the ledger hold."""
    counts = collections.Counter()
    for chunk in read_ledger(paths):
        counts.update(read_examples(paths.chunks / chunk.file, SIZE)["z"].tolist())
    return counts


def test_planes_survive_packing():
    planes = random_game(1, positions=20)[0]
    assert pack_planes(planes).shape == (20, 2 * SIZE * SIZE + 1)
    assert (unpack_planes(pack_planes(planes)) == planes).all()


@pytest.mark.parametrize("ownership", [True, False])
def test_a_game_is_read_as_it_was_written(tmp_path, ownership):
    game = random_game(1, ownership=ownership)
    write_game(tmp_path / "game", *game)
    assert (tmp_path / "game").read_bytes() == game_to_bytes(*game)
    for written, read in zip(game, read_game(tmp_path / "game", SIZE)):
        np.testing.assert_array_equal(written, read)


@pytest.mark.parametrize("size", [SIZE, 9])
def test_tensorflow_reads_the_same_bytes_that_it_would_write(tmp_path, size):
    from alphago_zero.quiet_tensorflow import tf

    planes, pi, z, ownership = random_game(1, size=size)
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    write_game(ours, planes, pi, z, ownership)

    def feature(data):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[data.tobytes()]))

    with tf.io.TFRecordWriter(theirs, "ZLIB") as writer:
        for x, p, outcome, owners in zip(pack_planes(planes), pi, z, ownership):
            features = {"x": feature(x), "pi": feature(p), "ownership": feature(owners)}
            features["z"] = tf.train.Feature(float_list=tf.train.FloatList(value=[outcome]))
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString(deterministic=True))
    with open(ours, "rb") as a, open(theirs, "rb") as b:
        assert zlib.decompress(a.read()) == zlib.decompress(b.read())
    assert len(list(tf.data.TFRecordDataset(ours, "ZLIB"))) == len(z)
    assert (read_examples(theirs, size)["pi"] == pi).all()


def test_every_game_is_taken_in_once_with_all_its_positions(tmp_path):
    paths = RunPaths(tmp_path)
    write_games(paths, range(1, 8))
    assert aggregate(paths, CONFIG, np.random.default_rng(0)).games == 7
    assert aggregate(paths, CONFIG, np.random.default_rng(0)).games == 0
    write_games(paths, range(8, 10), model="000001-c-d")
    result = aggregate(paths, CONFIG, np.random.default_rng(0))
    assert (result.games, result.positions) == (2, 16)
    assert games_in_chunks(paths) == {float(seed): 8 for seed in range(1, 10)}
    names = [chunk.file for chunk in read_ledger(paths)]
    assert names == sorted(names) and len(names) == 4
    first = read_examples(paths.chunks / names[0], SIZE)["z"]
    assert (np.diff(first) != 0).sum() > len(set(first))  # shuffled


def test_a_copy_of_a_game_is_no_game(tmp_path):
    paths = RunPaths(tmp_path)
    write_games(paths, [7])
    folder = paths.selfplay("000000-a-b")
    shutil.copy(folder / "00000007.tfrecord.zz", folder / "00000007 (copy).tfrecord.zz")
    assert aggregate(paths, CONFIG, np.random.default_rng(0)).games == 1
    assert finished_games(paths) == {7}


def test_a_game_without_examples_counts_as_taken(tmp_path):
    paths = RunPaths(tmp_path)
    write_games(paths, [])
    paths.selfplay("m").mkdir(parents=True)
    (paths.selfplay("m") / "00000001.tfrecord.zz").write_bytes(b"")
    assert aggregate(paths, CONFIG, np.random.default_rng(0)).games == 1
    assert aggregate(paths, CONFIG, np.random.default_rng(0)).games == 0
    assert len(load_window(paths, CONFIG, 100, np.random.default_rng(0))) == 0


DAMAGE = {
    "truncated": lambda data: data[: len(data) // 2],
    "one bit": lambda data: data[:30] + bytes([data[30] ^ 4]) + data[31:],
    "other file": lambda data: b"(;GM[1]SZ[9])",
    "other board size": lambda data: game_to_bytes(*random_game(1, size=9)),
    "other records": lambda data: zlib.compress(b"\0" * len(zlib.decompress(data))),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_game_is_set_aside_and_named_and_the_rest_is_used(tmp_path, damage, caplog):
    paths = RunPaths(tmp_path)
    write_games(paths, range(1, 6))
    bad = paths.selfplay("000000-a-b") / "00000003.tfrecord.zz"
    bad.write_bytes(damage(bad.read_bytes()))
    with caplog.at_level("WARNING"):
        result = aggregate(paths, CONFIG, np.random.default_rng(0))
    assert result.damaged == ("000000-a-b/00000003.tfrecord.zz",)
    assert set(games_in_chunks(paths)) == {1.0, 2.0, 4.0, 5.0}
    assert not bad.exists() and (paths.damaged / "selfplay" / "000000-a-b" / bad.name).exists()
    assert str(bad) in caplog.text


def test_a_damaged_chunk_is_set_aside_and_the_rest_is_used(tmp_path):
    paths = RunPaths(tmp_path)
    write_games(paths, range(1, 7))
    aggregate(paths, CONFIG, np.random.default_rng(0))
    first = paths.chunks / read_ledger(paths)[0].file
    first.write_bytes(first.read_bytes()[:50])
    examples = load_window(paths, CONFIG, 1000, np.random.default_rng(0))
    assert set(examples["z"]) == {4.0, 5.0, 6.0}
    assert (paths.damaged / "training_chunks" / first.name).exists()


def test_a_damaged_ledger_is_named(tmp_path):
    paths = RunPaths(tmp_path)
    paths.chunks.mkdir(parents=True)
    ledger_path(paths).write_text('{"file": "00000000.tfre')
    with pytest.raises(RecordError, match="ledger.jsonl is damaged"):
        read_ledger(paths)


def killed_aggregation(paths, kill_at):
    """Aggregate in a process of its own that is killed before its `kill_at`-th call to the disk; was it?"""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = kill_at

    def deadly(function):
        def call(*arguments, **keywords):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **keywords)

        return call

    for name in ("fsync", "replace", "unlink", "open"):
        setattr(os, name, deadly(getattr(os, name)))
    aggregate(paths, CONFIG, np.random.default_rng(0))
    os._exit(0)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_aggregation_killed_before_any_step_to_the_disk_takes_each_game_exactly_once(tmp_path):
    killed = True
    for kill_at in range(1, 100):
        paths = RunPaths(tmp_path / str(kill_at))
        write_games(paths, range(1, 5))
        aggregate(paths, CONFIG, np.random.default_rng(0))
        write_games(paths, range(5, 9), model="000001-c-d")
        (paths.selfplay("000001-c-d") / "00000006.tfrecord.zz").write_bytes(b"damaged")
        killed = killed_aggregation(paths, kill_at)
        aggregate(paths, CONFIG, np.random.default_rng(1))
        assert games_in_chunks(paths) == {float(seed): 8 for seed in (1, 2, 3, 4, 5, 7, 8)}, kill_at
        named = {chunk.file for chunk in read_ledger(paths)} | {"ledger.jsonl"}
        assert set(os.listdir(paths.chunks)) == named, kill_at
        if not killed:
            break
    assert not killed and kill_at > 8  # killed before every step, until there was none left


def test_the_window_is_the_newest_chunks_that_hold_enough_games():
    ledger = [Chunk(f"{i}", 10 * i, tuple("abc")) for i in range(5)]
    for games, chunks in ((1, ledger[4:]), (3, ledger[4:]), (4, ledger[3:]), (1000, ledger)):
        assert window(ledger, TrainingConfig(window_games=games)) == chunks
    assert window([], TrainingConfig(window_games=10)) == []


def test_the_window_may_be_a_share_of_all_games():
    ledger = [Chunk(f"{k}", 30, (f"{k}a", f"{k}b")) for k in range(10)]
    half = TrainingConfig(window_share=0.5, window_least=1)
    assert window(ledger, half) == ledger[5:]
    assert window(ledger, dataclasses.replace(half, window_least=14)) == ledger[3:]
    assert window(ledger, dataclasses.replace(half, window_games=4)) == ledger[8:]


def test_chunks_beyond_the_window_are_deleted_and_their_games_not_taken_again(tmp_path):
    paths = RunPaths(tmp_path)
    config = load_config(None, [f"game.board_size={SIZE}", "training.chunk_examples=8", "training.window_games=3"])
    write_games(paths, range(1, 8))
    aggregate(paths, config, np.random.default_rng(0))
    assert len(read_ledger(paths)) == 7
    assert len(list(paths.chunks.glob("*.zz"))) == 3
    assert aggregate(paths, config, np.random.default_rng(0)).games == 0
    examples = load_window(paths, config, 1000, np.random.default_rng(0))
    assert collections.Counter(examples["z"].tolist()) == {5.0: 8, 6.0: 8, 7.0: 8}


def test_a_limited_window_is_drawn_evenly_from_all_positions(tmp_path):
    paths = RunPaths(tmp_path)
    write_games(paths, range(1, 11))
    aggregate(paths, CONFIG, np.random.default_rng(0))
    counts = collections.Counter()
    for seed in range(100):
        examples = load_window(paths, CONFIG, 20, np.random.default_rng(seed))
        assert len(examples) == 20
        counts.update(examples["z"].tolist())
    assert len(counts) == 10
    # Each of the ten games is expected 200 times, with a standard deviation of 12.
    assert all(150 < count < 250 for count in counts.values())


def test_batches_see_every_example_once_before_any_again():
    examples = make_examples(*random_game(1, positions=12))
    examples["z"] = np.arange(12)
    batches = training_batches(examples, 8, np.random.default_rng(0))
    seen = np.concatenate([next(batches)["z"] for _ in range(3)])
    assert sorted(seen[:12]) == sorted(seen[12:]) == list(range(12))
    assert list(seen) != sorted(seen)
    assert [len(batch["z"]) for batch in plain_batches(examples, 8)] == [8, 4]


def test_a_batch_is_turned_by_each_examples_own_symmetry():
    planes, pi, z, ownership = random_game(3, positions=8)
    batch = make_batch(make_examples(planes, pi, z, ownership), np.arange(8))
    with_pass = np.concatenate([ownership, np.zeros((8, 1), np.int8)], axis=1)
    for symmetry in range(8):
        np.testing.assert_array_equal(batch["planes"][symmetry], apply_to_planes(planes[symmetry], symmetry))
        np.testing.assert_array_equal(batch["pi"][symmetry], apply_to_policy(pi[symmetry], symmetry))
        owners = apply_to_policy(with_pass[symmetry], symmetry)[:-1]
        np.testing.assert_array_equal(batch["ownership"][symmetry], owners)


def test_training_uses_all_eight_symmetries():
    examples = make_examples(*random_game(3, positions=8))[-1:]
    batch = next(training_batches(examples, 200, np.random.default_rng(0)))
    assert len({planes.tobytes() for planes in batch["planes"]}) == 8


def test_holdout_games_are_read_for_validation_and_never_taken_in(tmp_path):
    paths = RunPaths(tmp_path)
    assert len(load_holdout(paths, 5, SIZE)) == 0
    write_game(paths.holdout("000001-c-d") / "00000001.tfrecord.zz", *random_game(1, ownership=False))
    assert aggregate(paths, CONFIG, np.random.default_rng(0)).games == 0
    examples = load_holdout(paths, 5, SIZE)
    assert len(examples) == 8 and (examples["ownership"] == UNKNOWN).all()


def test_validation_looks_at_the_last_five_models_that_played(tmp_path):
    """Between them the gate refused others, which have no games."""
    paths = RunPaths(tmp_path)
    players = [1, 2, 5, 9, 10, 11, 30]
    for version in players:
        write_game(paths.holdout(f"{version:06d}-a-b") / f"{version:08d}.tfrecord.zz", *random_game(version))
    paths.holdout("000031-c-d").mkdir()
    assert sorted(set(load_holdout(paths, 5, SIZE)["z"])) == players[-5:]


def test_the_ledger_is_lines_that_a_person_can_read(tmp_path):
    paths = RunPaths(tmp_path)
    write_games(paths, [7])
    aggregate(paths, CONFIG, np.random.default_rng(0))
    line = json.loads(ledger_path(paths).read_text())
    assert line == {"file": "00000000.tfrecord.zz", "positions": 8, "games": ["000000-a-b/00000007.tfrecord.zz"]}
