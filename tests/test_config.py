"""A configuration is read strictly: what does not fit is refused by name."""

import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from alphago_zero.config import Config, ConfigError, NetworkConfig, load_config
from alphago_zero.go import Rules

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("*.yaml"))


@pytest.fixture
def config_file(tmp_path):
    def write(text):
        path = tmp_path / "my.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_without_a_file_the_defaults_hold():
    assert load_config() == Config()
    assert load_config().game == Rules()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_config_of_the_project_can_be_read(path):
    load_config(path)


def test_a_file_states_only_what_differs(config_file):
    config = load_config(config_file("network: {blocks: 3}\ngame:\n  komi: 6\n"))
    assert config.network == dataclasses.replace(NetworkConfig(), blocks=3)
    assert config.game == Rules(komi=6.0)
    assert isinstance(config.game.komi, float)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}"])
def test_a_file_may_be_empty(config_file, text):
    assert load_config(config_file(text)) == Config()


def test_numbers_may_be_written_as_people_write_them(config_file):
    """YAML 1.1 takes 1e-4 for a word."""
    assert load_config(config_file("training: {l2: 1e-4}")).training.l2 == 1e-4


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("netwrk: {}", "unknown key netwrk (did you mean network?)"),
        ("network: {filter: 3}", "unknown key network.filter (did you mean filters?)"),
        ("network: {x: 3}", "unknown key network.x (allowed: filters, blocks,"),
        ("7: 3", "unknown key 7"),
        ("network: 3", "network must be a mapping"),
        ("network:", "network must be a mapping"),
        ("- 3", "the file must be a mapping"),
        ("[]", "the file must be a mapping"),
        ("network: {filters: 3.5}", "network.filters must be a whole number, not 3.5"),
        ("network: {filters: true}", "network.filters must be a whole number, not True"),
        ("network: {filters: 0}", "network.filters must be between 1 and 1024, not 0"),
        ("network: {trunk: wavy}", "network.trunk must be one of residual, plain, not 'wavy'"),
        ("network: {trunk: 3}", "network.trunk must be a word, not 3"),
        ("network: {zero_heads: 1}", "network.zero_heads must be true or false, not 1"),
        ("search: {c_puct: much}", "search.c_puct must be a number, not 'much'"),
        ("search: {c_puct: .nan}", "search.c_puct must be finite, not nan"),
        ("search: {noise_alpha: -1}", "search.noise_alpha must be at least 0, not -1.0"),
        ("training: {l2: .inf}", "training.l2 must be finite, not inf"),
        ("training: {l2: null}", "training.l2 must be a number, not None"),
        ("game: {board_size: 1}", "game: board_size must be between 2 and 19, not 1"),
        ("seed: -1", "seed must be between 0 and 4.29497e+09, not -1"),
        ("seed: 1\nnetwork: {}\nseed: 2", "is not valid YAML: seed stands there twice"),
        ("network: {blocks: 1, blocks: 2}", "is not valid YAML: blocks stands there twice"),
        ("a: [", "is not valid YAML"),
        ("seed: 2020-13-45", "is not valid YAML"),
        ("[" * 5000, "is not valid YAML"),
        (f"search: {{c_puct: 1{'0' * 400}}}", "search.c_puct must be a number"),
        ("a: !!python/object/apply:os.getcwd []", "is not valid YAML"),
    ],
)
def test_what_does_not_fit_is_refused_with_file_and_key(config_file, text, complaint):
    path = config_file(text)
    with pytest.raises(ConfigError, match=re.escape(complaint)) as error:
        load_config(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_value_that_grows_without_end_is_not_printed_whole(config_file):
    laughs = "\n".join(f"- &l{k} [*l{k - 1}, *l{k - 1}, *l{k - 1}]" for k in range(1, 40))
    for text in (f"seed:\n- &l0 ha\n{laughs}", f"seed: {'ha' * 5000}", "seed: &a [*a]"):
        with pytest.raises(ConfigError, match="seed must be a whole number, not ") as error:
            load_config(config_file(text))
        assert len(str(error.value)) < 5000


@pytest.mark.parametrize(
    "schedule",
    ["3", "[]", "[[1, 0.1]]", "[[0, 0.1], [0, 0.01]]", "[[0, 0]]", "[[0, .nan]]", "[[0.5, 0.1]]", "[[0]]", "ab"],
)
def test_a_schedule_is_pairs_with_rising_steps_from_0(config_file, schedule):
    with pytest.raises(ConfigError, match=r"training.learning_rates must be a list of \[step, rate\] pairs"):
        load_config(config_file(f"training: {{learning_rates: {schedule}}}"))


def test_a_schedule_is_read():
    config = load_config(overrides=["training.learning_rates=[[0, 1e-2], [500, 0.001]]"])
    assert config.training.learning_rates == ((0, 0.01), (500, 0.001))


def test_overrides_win_over_the_file_and_later_ones_over_earlier(config_file):
    path = config_file("network: {blocks: 3, filters: 8}\nseed: 5")
    config = load_config(path, ["network.blocks=4", "network.blocks=6", "game.allow_suicide=true"])
    assert (config.network.blocks, config.network.filters, config.seed) == (6, 8, 5)
    assert config.game.allow_suicide is True


@pytest.mark.parametrize(
    "override, complaint",
    [
        ("network.blocks", "expected part.key=value"),
        ("netwrk.blocks=3", "unknown key netwrk (did you mean network?)"),
        ("network.block=3", "unknown key network.block (did you mean blocks?)"),
        ("blocks=3", "unknown key blocks"),
        ("seed.x=3", "seed is a value, not a part"),
        ("network=3", "network must be a mapping"),
        ("network.blocks=", "network.blocks must be a whole number, not None"),
        ("network.blocks=[", "the value is not valid YAML"),
        ("network.blocks=2020-13-45", "the value is not valid YAML"),
        ("game.komi=nan", "game.komi must be finite"),
    ],
)
def test_a_bad_override_is_named(override, complaint):
    with pytest.raises(ConfigError, match=re.escape(f"--set {override}: {complaint}")):
        load_config(overrides=[override])


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read config .*missing\.yaml: No such file"):
        load_config(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="cannot read config"):
        load_config(tmp_path)


def test_a_binary_file_is_refused(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not valid YAML"):
        load_config(path)


def test_the_digest_tells_configurations_apart():
    assert Config().digest() == load_config().digest()
    assert Config().digest() != load_config(overrides=["seed=1"]).digest()


def test_a_configuration_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().seed = 1


# --- the configurations of the project ------------------------------------------------------------------------------

# What came after the paper, or deviates from it, and the value that leaves it out.
BEYOND_THE_PAPER = {
    "network.zero_heads": False,
    "network.ownership": False,
    "search.algorithm": "puct",
    "search.first_visit": "zero",
    "selfplay.no_pass_before": 0,
    "selfplay.full_search_share": 1.0,
    "training.window_share": 1.0,
    "training.average": 0.0,
    "training.value_weight": 1.0,
    "evaluation.gate": True,
}

PAPER = {
    "game.board_size": 9,
    "game.komi": 7.5,
    "game.allow_suicide": False,
    "network.filters": 256,
    "network.blocks": 19,
    "network.value_hidden": 256,
    "network.trunk": "residual",
    "network.heads": "dual",
    "search.readouts": 1600,
    "search.first_visit": "zero",
    "search.noise_fraction": 0.25,
    "search.noise_alpha": 0.0,
    "search.leaves": 8,
    "selfplay.games": 25_000,
    "selfplay.temperature_moves": 30,
    "selfplay.resign_disabled": 0.1,
    "selfplay.resign_false_positives": 0.05,
    "selfplay.holdout": 0.05,
    "selfplay.no_pass_before": 0,
    "training.batch_size": 2048,
    "training.momentum": 0.9,
    "training.l2": 1e-4,
    "training.value_weight": 1.0,
    "training.learning_rates": ((0, 0.01), (400_000, 0.001), (600_000, 0.0001)),
    "training.window_games": 500_000,
    "training.steps": 1000,
    "training.checkpoint_steps": 1000,
    "evaluation.gate": True,
    "evaluation.games": 400,
    "evaluation.readouts": 1600,
    "evaluation.threshold": 0.55,
    "evaluation.opening_moves": 0,
    "evaluation.early_stop": False,
}

BOOK = {
    "network.batch_norm_momentum": 0.997,
    "network.batch_norm_epsilon": 1e-5,
    "search.readouts": 1600,
    "search.c_puct": 1.38,
    "search.leaves": 8,
    "search.pass_answers_pass": True,
    "search.first_visit": "zero",
    "selfplay.games": 100,
    "selfplay.resign_threshold": -0.9,
    "selfplay.resign_disabled": 0.0,
    "selfplay.holdout": 0.05,
    "selfplay.no_pass_before": 0,
    "training.chunk_examples": 10_000,
    "evaluation.gate": False,
    "evaluation.readouts": 400,
}


def value(config, key):
    part, name = key.split(".")
    return getattr(getattr(config, part), name)


@pytest.mark.parametrize("file, figures", [("paper.yaml", PAPER), ("book.yaml", BOOK)])
def test_a_config_states_every_figure_of_its_source_and_no_other(file, figures):
    path = CONFIGS[0].parent / file
    stated = {f"{part}.{key}" for part, keys in yaml.safe_load(path.read_text()).items() for key in keys}
    assert stated == set(figures)
    config = load_config(path)
    assert {key: value(config, key) for key in figures} == figures


# What the small scale forces on the default (docs/fidelity.md says why).
FORCED = {"search.first_visit", "selfplay.no_pass_before"}


@pytest.mark.parametrize("file, forced", [("default.yaml", FORCED), ("paper.yaml", set())])
def test_what_came_after_the_paper_is_off(file, forced):
    config = load_config(CONFIGS[0].parent / file)
    assert {key for key, off in BEYOND_THE_PAPER.items() if value(config, key) != off} == forced


def test_whatever_is_called_beyond_the_paper_is_known_to_the_test_above():
    """A switch says 'beyond the paper' in the comment before it, or in its own line."""
    source = (CONFIGS[0].parent.parent / "alphago_zero" / "config.py").read_text()
    names = re.findall(r"(?:# [^\n]*\n\s*)*?# [^\n]*[Bb]eyond the paper[^\n]*\n(?:\s*#[^\n]*\n)*\s*(\w+): ", source)
    names += re.findall(r"(\w+): [^\n#]*# [^\n]*beyond the paper", source)
    known = {key.split(".")[1] for key in BEYOND_THE_PAPER}
    settings_of_switches = {"gumbel_actions"}  # only read with search.algorithm: gumbel
    assert len(names) >= 4 and set(names) - settings_of_switches <= known
