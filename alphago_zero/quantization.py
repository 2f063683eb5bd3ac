"""Networks in eight bits: made once for a model by whoever publishes it, measured, and kept beside it.

In: an exported model and positions like those it will see. Out, beside the model `models/000010-pretty-tetra`:
    .int8.xml, .int8.bin    the network with weights and activations in 8 bits, for OpenVINO
    .int8                   `Quantization` as JSON, written last: how far its p and v are from those in f32
Nothing here needs TensorFlow. nncf, which does the work, is loaded in a process of its own, where it neither stays
in memory nor reports to anybody. A model that eight bits would spoil is used in bf16 or f32.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import json
import multiprocessing
import platform
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from absl import logging

from alphago_zero.config import Config
from alphago_zero.constants import RunPaths, game_files
from alphago_zero.features import extract_features
from alphago_zero.files import atomic_write_bytes, atomic_write_text
from alphago_zero.go import BoardState, Rules
from alphago_zero.interrupts import children_unharmed
from alphago_zero.model import ModelError, graph_digest, load_graph, load_model_info, model_file
from alphago_zero.records import RecordError, read_examples, unpack_planes

# Mean distances from f32 on positions that were not used for calibration (docs/performance.md: why these).
MOST_P_ERROR = 0.04  # total variation of p
MOST_V_ERROR = 0.05  # |v - v_f32|
_BATCH = 50
_CALIBRATION = 300  # positions; more change nothing
_GAMES = 60  # newest games that they are from; another 60 serve to measure


@dataclass(frozen=True)
class Quantization:
    """What became of a model in 8 bits."""

    graph_digest: str  # of the inference graph that it was made from
    digest: str  # of the .xml and .bin files
    p_error: float
    v_error: float

    def __post_init__(self):
        if not all(isinstance(error, (int, float)) for error in (self.p_error, self.v_error)):
            raise ValueError("p_error and v_error must be numbers")

    @property
    def is_good(self) -> bool:
        return self.p_error <= MOST_P_ERROR and self.v_error <= MOST_V_ERROR


def int8_pays() -> bool:
    """Is int8 the fastest on this CPU? On x86-64, with or without VNNI; elsewhere OpenVINO gains little by it."""
    return platform.machine().lower() in ("x86_64", "amd64")


def load_quantization(prefix: str | Path) -> Quantization | None:
    """What is known about the model in 8 bits; None if it was not made (for the graph that is there now)."""
    path = model_file(prefix, ".int8")
    try:
        quantization = Quantization(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged: {error}") from None
    return quantization if quantization.graph_digest == load_model_info(prefix).graph_digest else None


def load_int8_network(prefix: str | Path, quantization: Quantization) -> tuple[bytes, bytes]:
    """The network's .xml and .bin, checked."""
    paths = [model_file(prefix, suffix) for suffix in (".int8.xml", ".int8.bin")]
    try:
        network, weights = (path.read_bytes() for path in paths)
    except OSError as error:
        raise ModelError(f"cannot read model {prefix} in int8: {error.filename}: {error.strerror}") from None
    if graph_digest(network + weights) != quantization.digest:
        raise ModelError(f"{paths[0]} or {paths[1].name} is damaged: delete {prefix}.int8 and it is made anew")
    return network, weights


def ensure_quantized(paths: RunPaths, config: Config, prefix: str | Path) -> None:
    """Make the 8-bit version of a run's model, where the configuration and this computer have a use for it."""
    wanted = config.inference.precision
    if config.inference.backend == "tensorflow" or not (wanted == "int8" or (wanted == "auto" and int8_pays())):
        return
    if any(importlib.util.find_spec(name) is None for name in ("nncf", "openvino")):
        logging.log_first_n(logging.WARNING, "no int8 networks: they need nncf and openvino (pip install nncf)", 1)
        return
    if load_quantization(prefix) is None:
        try:
            quantize_model(prefix, *example_positions(paths, config.game))
        except Exception as error:  # whatever nncf stumbles over: the model serves as it is
            logging.warning("%s is not made in int8: %s: %s", Path(prefix).name, type(error).__name__, error)


def example_positions(paths: RunPaths, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """uint8 [B, N, N, 17] twice, from different games, for calibration and to measure.

    They are spread over the moves of the newest self-play games; before there are such games, of random ones.
    """
    games = []
    for path in example_files(paths):
        with contextlib.suppress(RecordError, FileNotFoundError):  # the next stage that needs the game will say so
            games.append(unpack_planes(read_examples(path, rules.board_size)["x"]))
    games = [game for game in games if len(game)]
    if len(games) < 20:
        rng = np.random.default_rng(0)
        games = [_random_game(rules, rng) for _ in range(20)]
    halves = (np.concatenate(games[k::2]) for k in (0, 1))
    calibration, measure = (half[np.linspace(0, len(half) - 1, _CALIBRATION).astype(int)] for half in halves)
    return calibration, measure


def example_files(paths: RunPaths) -> list:
    """The games from which examples are taken."""
    return sorted(game_files(paths.selfplay("")), key=lambda path: path.name)[-2 * _GAMES :]


def _random_game(rules: Rules, rng: np.random.Generator) -> np.ndarray:
    state, planes = BoardState(rules), []
    while not state.is_game_over and len(planes) < rules.points:
        planes.append(extract_features(state))
        state = state.play_move(rng.choice(np.flatnonzero(state.legal_moves())))
    return np.stack(planes)


def quantize_model(prefix: str | Path, calibration: np.ndarray, measure: np.ndarray) -> Quantization:
    """Write the model in 8 bits beside it, and how far it is from f32 on the positions `measure`."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        with children_unharmed():
            future = process.submit(_quantize, str(prefix), calibration, measure)
        quantization = future.result()
    name = Path(prefix).name
    errors = f"p differs from f32 by {quantization.p_error:.4f}, v by {quantization.v_error:.4f}"
    if quantization.is_good:
        logging.info("%s in int8: %s", name, errors)
    else:
        logging.warning("%s is not used in int8: %s (at most %g and %g)", name, errors, MOST_P_ERROR, MOST_V_ERROR)
    return quantization


def _quantize(prefix: str, calibration: np.ndarray, measure: np.ndarray) -> Quantization:
    """In a process of its own."""
    sys.modules["openvino_telemetry"] = None  # whoever would report to its maker finds that it is not installed
    import openvino

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        import nncf
    info, _ = load_graph(prefix)
    network = openvino.Core().read_model(model_file(prefix, ".pb"))
    dense = [node.get_friendly_name() for node in network.get_ordered_ops() if node.get_type_name() == "MatMul"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):  # progress bars
        nncf.set_log_level("ERROR")
        quantized = nncf.quantize(
            network.clone(),
            nncf.Dataset([calibration[k : k + _BATCH] for k in range(0, len(calibration), _BATCH)]),
            preset=nncf.QuantizationPreset.MIXED,
            subset_size=len(calibration) // _BATCH,
            fast_bias_correction=False,  # the thorough one leaves half of p's error and a fifth of v's
            ignored_scope=nncf.IgnoredScope(names=dense),  # of the heads: nearly free, and a quarter less error in p
        )
    (p, v), (exact_p, exact_v) = (_evaluate(model, measure) for model in (quantized, network))
    p_error = float(np.abs(p - exact_p).sum(axis=1).mean() / 2)
    v_error = float(np.abs(v - exact_v).mean())
    with tempfile.TemporaryDirectory() as folder:
        openvino.save_model(quantized, f"{folder}/int8.xml", compress_to_fp16=False)
        parts = [Path(folder, f"int8{suffix}").read_bytes() for suffix in (".xml", ".bin")]
    quantization = Quantization(info.graph_digest, graph_digest(b"".join(parts)), p_error, v_error)
    for suffix, part in zip((".int8.xml", ".int8.bin"), parts):
        atomic_write_bytes(model_file(prefix, suffix), part)
    atomic_write_text(model_file(prefix, ".int8"), json.dumps(dataclasses.asdict(quantization), indent=2) + "\n")
    return quantization


def _evaluate(network, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import openvino

    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(network, "CPU", settings).create_infer_request()
    request.infer({"planes:0": planes})
    p, v = (request.get_tensor(name).data.copy() for name in ("policy:0", "value:0"))
    return p, v.ravel()
