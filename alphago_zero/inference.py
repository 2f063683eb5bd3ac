"""How a batch of positions is evaluated: one interface, two runtimes, one exported graph.

    evaluate(planes uint8 [B, N, N, 17]) -> p float32 [B, N * N + 1], v float32 [B]
OpenVINO is the faster one on a CPU and needs no TensorFlow; TensorFlow serves a GPU, and where OpenVINO is missing.
Each is imported only when it is used. With `threads` = 1, worker processes do not get in each other's way.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from absl import logging

from alphago_zero.features import PLANES
from alphago_zero.model import ModelError, ModelInfo, load_graph, model_file
from alphago_zero.quantization import int8_pays, load_int8_network, load_quantization

# All that an exported graph is made of. TensorFlow has other operations, which read and write files.
_OPERATIONS = frozenset(
    "AddV2 Cast Const Conv2D Identity MatMul Placeholder Relu Reshape Softmax StridedSlice Tanh".split()
)


class Evaluator:
    """A model ready to evaluate batches of up to `batch_size`; its runtimes fill in `_run`."""

    def __init__(self, model: ModelInfo, batch_size: int, description: str):
        size = model.rules.board_size
        self.model = model
        self.batch_size = batch_size
        self.description = description  # "openvino f32"
        self._planes = np.zeros((batch_size, size, size, PLANES), np.uint8)

    def evaluate(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """uint8 [B, N, N, 17], B <= batch_size -> p [B, N * N + 1], v [B] for the player to move."""
        count = len(planes)
        self._planes[:count] = planes
        p, v = self._run()
        return p[:count].copy(), v[:count].copy()

    def _run(self) -> tuple[np.ndarray, np.ndarray]:
        """p and v of `self._planes`, in arrays that the next call may overwrite."""
        raise NotImplementedError


def load_evaluator(
    prefix: str | Path, batch_size: int, threads: int = 1, backend: str = "auto", precision: str = "auto"
) -> Evaluator:
    """Load the model at `prefix`. Backend auto, openvino or tensorflow; precision auto, f32, bf16, int8."""
    info, graph = load_graph(prefix)
    if backend == "auto":
        backend = "openvino" if _openvino_serves() else "tensorflow"
    runtime = {"openvino": _OpenVINO, "tensorflow": _TensorFlow}[backend]
    path = model_file(prefix, ".pb")
    try:
        return runtime(info, graph, path, batch_size, threads, precision)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ModelError(f"{path} is not a network that {backend} can evaluate: {reason}") from None


def _openvino_serves() -> bool:
    """OpenVINO is there, and TensorFlow has no GPU that would be faster."""
    try:
        from alphago_zero.quiet_openvino import openvino  # noqa: F401
    except ImportError:
        return False
    if not os.path.exists("/dev/nvidiactl"):  # do not load TensorFlow only to ask
        return True
    try:
        from alphago_zero.quiet_tensorflow import tf
    except ImportError:
        return True
    return not tf.config.list_physical_devices("GPU")


def cpu_has_bf16() -> bool:
    """As OpenVINO sees it; without OpenVINO nobody knows."""
    try:
        from alphago_zero.quiet_openvino import openvino
    except ImportError:
        return False
    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


class _OpenVINO(Evaluator):
    def __init__(self, model: ModelInfo, graph: bytes, path: Path, batch_size: int, threads: int, precision: str):
        from alphago_zero.quiet_openvino import openvino

        core = openvino.Core()
        if precision not in ("auto", "f32", "bf16", "int8"):
            raise ModelError(f"OpenVINO evaluates {model.name} in f32, bf16 or int8, not in {precision}")
        floats = precision  # of all that is not in 8 bits
        if precision in ("auto", "int8"):
            floats = "bf16" if cpu_has_bf16() else "f32"
            precision = _int8_or(floats, model, path.with_suffix(""), precision)
        super().__init__(model, batch_size, f"openvino {precision}")
        if precision == "int8":
            prefix = path.with_suffix("")
            network = core.read_model(*load_int8_network(prefix, load_quantization(prefix)))
        else:
            network = core.read_model(path)
        network.reshape({"planes:0": self._planes.shape})  # kernels for one shape are faster
        compiled = core.compile_model(
            network,
            "CPU",
            {
                "INFERENCE_NUM_THREADS": threads,
                "NUM_STREAMS": 1,
                "INFERENCE_PRECISION_HINT": floats,
                "ENABLE_CPU_PINNING": False,  # else the threads of all workers are pinned to the same core
            },
        )
        self._request = compiled.create_infer_request()
        self._request.set_tensor("planes:0", openvino.Tensor(self._planes, shared_memory=True))
        self._outputs = [self._request.get_tensor(name).data for name in ("policy:0", "value:0")]

    def _run(self) -> tuple[np.ndarray, np.ndarray]:
        self._request.infer()
        return self._outputs[0], self._outputs[1]


def _int8_or(floats: str, model: ModelInfo, prefix: Path, asked: str) -> str:
    """int8 if the model was made in 8 bits and is good there (auto: and this CPU gains by it), else `floats`."""
    if asked == "auto" and not int8_pays():
        return floats
    quantization = load_quantization(prefix)
    if quantization is None and asked == "int8":
        raise ModelError(f"{model.name} was not made in int8 (controller.py quantize {model.name})")
    if quantization is not None and not quantization.is_good and asked == "int8":
        logging.warning("%s is evaluated in %s: int8 would spoil it", model.name, floats)
    return "int8" if quantization is not None and quantization.is_good else floats


class _TensorFlow(Evaluator):
    def __init__(self, model: ModelInfo, graph: bytes, path: Path, batch_size: int, threads: int, precision: str):
        from alphago_zero.quiet_tensorflow import tf

        if precision not in ("auto", "f32"):
            raise ModelError(f"TensorFlow evaluates {model.name} in f32, not in {precision}")
        super().__init__(model, batch_size, "tensorflow f32")
        v1 = tf.compat.v1
        config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
        config.gpu_options.allow_growth = True
        with tf.Graph().as_default() as loaded:
            planes, p, v = self._import(tf, graph)
            session = v1.Session(graph=loaded, config=config)
            self._call = session.make_callable([p, v], feed_list=[planes])

    def _import(self, tf, graph: bytes) -> list:
        """The tensors planes, policy and value of an exported graph; a graph that does anything else is refused."""
        from google.protobuf.message import DecodeError

        try:
            definition = tf.compat.v1.GraphDef.FromString(graph)
            foreign = {node.op for node in definition.node} - _OPERATIONS
            if foreign:
                raise ValueError(f"it has the operations {', '.join(sorted(foreign))}")
            tensors = tf.import_graph_def(definition, name="", return_elements=["planes:0", "policy:0", "value:0"])
            tensors[0].shape.assert_is_compatible_with(self._planes.shape)
        except (DecodeError, ValueError) as error:
            raise RuntimeError(str(error)) from None
        return tensors

    def _run(self) -> tuple[np.ndarray, np.ndarray]:
        p, v = self._call(self._planes)
        return p, v
