"""Models: what stands in the JSON beside a checkpoint, how models are named, and how a person's word for one is read.

A model is a path prefix, `models/000010-pretty-tetra`, with the files
    .index, .data-00000-of-00001    the checkpoint, from which training can go on
    .pb                             the frozen inference graph
    .json                           `ModelInfo`, written last: a model without it does not exist
Loading one depends on no configuration and executes nothing; it does not need TensorFlow either.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from alphago_zero import __version__
from alphago_zero.config import ConfigError, NetworkConfig, build
from alphago_zero.constants import RunPaths
from alphago_zero.errors import UserError
from alphago_zero.files import atomic_write_text
from alphago_zero.rules import Rules

SUFFIXES = (".index", ".data-00000-of-00001", ".pb", ".json")
SHIPPED = Path(__file__).parent / "shipped"  # the model that comes with the program


class ModelError(UserError):
    """A model that cannot be found or read; the message names it."""


@dataclass(frozen=True)
class ModelInfo:
    """All that a program must know to use a model, and where the model came from."""

    name: str  # 000010-pretty-tetra
    version: int
    rules: Rules
    network: NetworkConfig
    graph_digest: str  # of the inference graph, so that a damaged one is found before it is used
    parent: str = ""  # the model whose training went on to this one
    steps: int = field(default=0, metadata={"low": 0})  # training steps since random weights
    games: int = field(default=0, metadata={"low": 0})  # games of self-play taken in until then
    positions: int = field(default=0, metadata={"low": 0})  # examples of these games
    config_digest: str = ""
    software: str = f"alphago_zero {__version__}"

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str) -> ModelInfo:
        """Read strictly; `source` is how an error names the file."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{source} is damaged: {error}") from None
        required = {"name", "version", "rules", "network", "graph_digest"}
        if not isinstance(values, dict) or not required <= set(values):
            raise ModelError(f"{source} does not describe a model: it needs {', '.join(sorted(required))}")
        try:
            return build(cls, values, source=source)
        except ConfigError as error:
            raise ModelError(str(error)) from None


def model_name(version: int, seed: int = 0) -> str:
    """The name of a run's model: its version, and two words that are the same whenever it is exported again."""
    import numpy as np  # not needed to find and describe a model, which has to be quick

    rng = np.random.default_rng([seed, version])
    return f"{version:06d}-{rng.choice(_ADJECTIVES)}-{rng.choice(_FISHES)}"


def model_file(prefix: str | Path, suffix: str) -> Path:
    return Path(f"{prefix}{suffix}")


def save_model_info(prefix: str | Path, info: ModelInfo) -> None:
    """Publish a model whose other files are written."""
    atomic_write_text(model_file(prefix, ".json"), info.to_json())


def load_model_info(prefix: str | Path) -> ModelInfo:
    path = model_file(prefix, ".json")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelError(f"cannot read model {prefix}: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} is damaged: not UTF-8 text") from None
    return ModelInfo.from_json(text, str(path))


def graph_digest(graph: bytes) -> str:
    return hashlib.sha256(graph).hexdigest()[:16]


def load_graph(prefix: str | Path) -> tuple[ModelInfo, bytes]:
    """A model's description and its inference graph, checked against each other."""
    info = load_model_info(prefix)
    path = model_file(prefix, ".pb")
    try:
        graph = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read model {prefix}: {path}: {error.strerror}") from None
    if graph_digest(graph) != info.graph_digest:
        raise ModelError(f"{path} is damaged: it is not the graph that {info.name}.json describes")
    return info, graph


def list_models(paths: RunPaths) -> list[Path]:
    """Prefixes of a run's models, oldest first."""
    prefixes = (path.with_suffix("") for path in paths.models.glob("*.json"))
    return sorted(prefix for prefix in prefixes if re.fullmatch(r"\d{6,}-[\w-]+", prefix.name))  # "... (copy)" is none


def promote(paths: RunPaths, name: str) -> None:
    """Make `name` the best player of the run."""
    atomic_write_text(paths.best, name + "\n")


def resolve_model(word: str | Path, paths: RunPaths) -> Path:
    """The prefix of the model that `word` means: a path, a bare name, a version number, best, latest or shipped."""
    prefix = _find(str(word), paths)
    if not model_file(prefix, ".json").is_file():
        names = [model.name for model in list_models(paths)]
        known = f"there are {len(names)} models, {names[0]} to {names[-1]}," if names else "there is none"
        raise ModelError(f"no model {word}: {known} in {paths.models.resolve()}")
    return prefix


def default_model(paths: RunPaths) -> Path:
    """Whom to take if nobody says: the best model of the run, else the one that comes with the program."""
    if paths.best.is_file():
        return resolve_model("best", paths)
    if any(SHIPPED.glob("*.json")):
        return resolve_model("shipped", paths)
    where = f"no best model yet in {paths.models.resolve()}, and none is shipped with this installation"
    raise ModelError(f"{where}: name a model, or a run by --run-dir")


def _find(word: str, paths: RunPaths) -> Path:
    models = list_models(paths)
    if word == "shipped":
        shipped = sorted(SHIPPED.glob("*.json"))
        if not shipped:
            raise ModelError("no model is shipped with this installation")
        return shipped[-1].with_suffix("")
    if word == "best":
        if not paths.best.is_file():
            raise ModelError(f"no best model yet in {paths.models.resolve()}")
        best = paths.models / paths.best.read_text(encoding="utf-8", errors="replace").strip()
        if not model_file(best, ".json").is_file():
            raise ModelError(f"{paths.best} does not name a model of the run: write the name of one into it")
        return best
    if word == "latest" and models:
        return models[-1]
    if word.isdecimal():
        return next((model for model in models if int(model.name.split("-")[0]) == int(word)), paths.models / word)
    for suffix in SUFFIXES:
        word = word.removesuffix(suffix)
    if model_file(word, ".json").is_file():
        return Path(word)
    return paths.models / word


_ADJECTIVES = (
    "agile amber bold brave bright brisk calm clear clever cosmic crisp daring deep eager early fair fierce fond free "
    "gentle glad golden grand happy hardy honest humble jolly keen kind light lively lucid lucky mellow merry mighty "
    "modest neat nimble noble patient placid plucky polite pretty proud quick quiet rapid ready robust serene sharp "
    "shiny silent silver simple smart snug solid steady still stout subtle sunny swift tender tidy tranquil trusty "
    "upbeat valiant vivid warm watchful wise witty young zesty"
).split()
_FISHES = (
    "anchovy angler arowana barbel bass betta bleak bream brill burbot carp catfish char chub cod dab dace danio "
    "darter discus dory eel flounder garfish goby grayling grouper guppy gurnard haddock hake halibut herring huchen "
    "ide koi lamprey ling loach mackerel minnow molly moray mullet oscar perch pike pilchard platy plaice pollock "
    "puffer rasbora ray roach rudd salmon sardine shark skate smelt snapper sole sprat sturgeon sunfish tench tetra "
    "trout tuna turbot whiting wrasse zander"
).split()
