"""Models describe themselves, and a person's word for one finds it."""

import json
import re

import pytest

from alphago_zero import model as models
from alphago_zero.config import NetworkConfig
from alphago_zero.constants import RunPaths
from alphago_zero.go import Rules
from alphago_zero.model import (
    ModelError,
    ModelInfo,
    graph_digest,
    list_models,
    load_graph,
    load_model_info,
    model_file,
    model_name,
    promote,
    resolve_model,
    save_model_info,
)

GRAPH = b"a graph"


def publish(paths, version):
    info = ModelInfo(
        name=model_name(version),
        version=version,
        rules=Rules(board_size=5, komi=6.5),
        network=NetworkConfig(filters=8, blocks=1),
        graph_digest=graph_digest(GRAPH),
        parent=model_name(version - 1) if version else "",
        steps=1000 * version,
    )
    paths.models.mkdir(parents=True, exist_ok=True)
    model_file(paths.models / info.name, ".pb").write_bytes(GRAPH)
    save_model_info(paths.models / info.name, info)
    return info


@pytest.fixture
def paths(tmp_path):
    paths = RunPaths(tmp_path)
    for version in (0, 2, 10):
        publish(paths, version)
    return paths


def test_a_description_survives_its_json(paths):
    info = publish(paths, 3)
    assert load_model_info(paths.models / info.name) == info
    assert load_graph(paths.models / info.name) == (info, GRAPH)


def test_names_are_padded_pretty_and_always_the_same():
    assert re.fullmatch(r"000010-[a-z]+-[a-z]+", model_name(10))
    assert model_name(10) == model_name(10)
    assert len({model_name(10, seed) for seed in range(20)}) > 15


def test_every_way_to_name_a_model(paths, monkeypatch):
    name = model_name(2)
    prefix = paths.models / name
    for word in (name, "2", "000002", str(prefix), f"{prefix}.json", f"{prefix}.pb", prefix):
        assert resolve_model(word, paths) == prefix
    assert resolve_model("latest", paths).name == model_name(10)
    promote(paths, model_name(0))
    assert resolve_model("best", paths).name == model_name(0)
    monkeypatch.setattr(models, "SHIPPED", paths.models)
    assert resolve_model("shipped", paths).name == model_name(10)


def test_models_are_listed_oldest_first_and_only_with_their_json(paths):
    model_file(paths.models / "000011-half-carp", ".pb").write_bytes(GRAPH)
    (paths.models / "000010-some-carp (copy).json").write_text("{}")
    assert [prefix.name for prefix in list_models(paths)] == [model_name(version) for version in (0, 2, 10)]


@pytest.mark.parametrize("word", ["7", "no-such-model", "models/000007-x"])
def test_an_unknown_model_is_named_with_what_there_is(paths, word):
    with pytest.raises(ModelError, match=f"no model {word}: there are 3 models, 000000-.* in /"):
        resolve_model(word, paths)


def test_words_that_mean_nothing_yet(tmp_path):
    paths = RunPaths(tmp_path)
    for word, complaint in (("best", "no best model yet"), ("latest", "no model latest: there is none in /")):
        with pytest.raises(ModelError, match=complaint):
            resolve_model(word, paths)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"000099-no-fish", b"../.."])
def test_a_damaged_note_of_the_best_model_is_named(paths, content):
    paths.best.write_bytes(content)
    with pytest.raises(ModelError, match="best.txt does not name a model"):
        resolve_model("best", paths)


def damaged(change):
    def damage(text):
        values = json.loads(text)
        change(values)
        return json.dumps(values).encode()

    return damage


@pytest.mark.parametrize(
    "damage, complaint",
    [
        (lambda text: text[:40].encode(), "is damaged"),
        (lambda text: b"\xff\xfe\x00", "is damaged: not UTF-8"),
        (lambda text: b"[1, 2]", "does not describe a model"),
        (lambda text: b"[" * 100_000, "is damaged"),
        (
            lambda text: b'{"version": ' + b"9" * 5000 + b"}",
            "is damaged|does not describe",
        ),  # as Python's version says
        (lambda text: b"{}", "needs graph_digest, name, network, rules, version"),
        (damaged(lambda values: values.update(version="ten")), "version must be a whole number"),
        (damaged(lambda values: values["network"].update(filters=0)), "network.filters must be between"),
        (damaged(lambda values: values["network"].update(wings=2)), "unknown key network.wings"),
    ],
)
def test_a_damaged_description_gives_one_clear_line(paths, damage, complaint):
    prefix = paths.models / model_name(2)
    path = model_file(prefix, ".json")
    path.write_bytes(damage(path.read_text()))
    with pytest.raises(ModelError, match=complaint) as caught:
        load_model_info(prefix)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_truncated_or_missing_graph_gives_one_clear_line(paths):
    prefix = paths.models / model_name(2)
    model_file(prefix, ".pb").write_bytes(GRAPH[:3])
    with pytest.raises(ModelError, match=r"\.pb is damaged"):
        load_graph(prefix)
    model_file(prefix, ".pb").unlink()
    with pytest.raises(ModelError, match="cannot read model .*No such file"):
        load_graph(prefix)
