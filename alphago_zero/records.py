"""Training examples as bytes: TFRecord files that TensorFlow reads, written and read without TensorFlow.

An example is a `tf.train.Example` with four features:
    x          bytes, uint8 [2 * N * N + 1]: packed planes (see `pack_planes`)
    pi         bytes, float32 [N * N + 1]: the search's probabilities, pass last
    z          float: the outcome for the player to move
    ownership  bytes, int8 [N * N]: who owned each point at the end, 1 the player to move, -1 the opponent, 0 nobody;
               UNKNOWN everywhere if the game was not played to the end
All examples of one board size have the same length, so that a file is an array: `example_dtype` is its row, with the
bytes of TFRecord (lengths, checksums) and of protobuf (field headers) as fields of their own, between the values.
"""

from __future__ import annotations

import functools
import zlib
from pathlib import Path

import numpy as np

from alphago_zero.errors import UserError
from alphago_zero.files import atomic_write_bytes
from alphago_zero.jit import njit

HISTORY = 8  # positions in the planes, for each colour
UNKNOWN = 127  # ownership of a point when nobody counted


class RecordError(UserError):
    """A record file that cannot be used; the message names it."""


def pack_planes(planes: np.ndarray) -> np.ndarray:
    """uint8 [T, N, N, 17] -> uint8 [T, 2 * N * N + 1]: one byte a point and colour, then 1 if Black is to move.

    Bit t of such a byte says that a stone stood there t moves ago; own stones come first, then the opponent's.
    """
    count, size = planes.shape[:2]
    stones = planes[..., : 2 * HISTORY].reshape(count, size * size, HISTORY, 2)
    packed = np.packbits(stones, axis=2, bitorder="little").reshape(count, -1)
    return np.concatenate([packed, planes[:, 0, 0, -1:]], axis=1)


def unpack_planes(x: np.ndarray) -> np.ndarray:
    """The inverse of `pack_planes`."""
    count, size = len(x), int(np.sqrt(x.shape[1] // 2))
    planes = np.empty((count, size * size, 2 * HISTORY + 1), np.uint8)
    stones = np.unpackbits(x[:, :-1].reshape(count, -1, 1, 2), axis=2, bitorder="little")  # [T, points, HISTORY, 2]
    planes[..., :-1] = stones.reshape(count, -1, 2 * HISTORY)
    planes[..., -1] = x[:, -1:]
    return planes.reshape(count, size, size, -1)


def make_examples(
    planes: np.ndarray,  # uint8 [T, N, N, 17]
    pi: np.ndarray,  # float32 [T, N * N + 1]
    z: np.ndarray,  # float32 [T]
    ownership: np.ndarray | None = None,  # int8 [T, N * N]
) -> np.ndarray:
    """The positions of a game as an array of `example_dtype`."""
    return make_packed_examples(pack_planes(planes), pi, z, ownership)


def make_packed_examples(x: np.ndarray, pi: np.ndarray, z: np.ndarray, ownership: np.ndarray | None) -> np.ndarray:
    """`make_examples` of planes that are packed already, uint8 [T, 2 * N * N + 1]."""
    count, size = len(x), int(np.sqrt(x.shape[1] // 2))
    template = _template(size)
    examples = np.repeat(template, count)
    examples["x"] = x
    examples["pi"] = pi
    examples["z"] = z
    examples["ownership"] = UNKNOWN if ownership is None else ownership
    rows = examples.view(np.uint8).reshape(count, -1)
    examples["checksum"] = _masked_crc32c(rows[:, template.dtype.fields["example"][1] : -4])
    return examples


def to_bytes(examples: np.ndarray) -> bytes:
    """A TFRecord file of compression type ZLIB."""
    return zlib.compress(examples.tobytes(), level=6)


def write_examples(path: str | Path, examples: np.ndarray) -> None:
    atomic_write_bytes(path, to_bytes(examples))


def read_examples(path: str | Path, size: int) -> np.ndarray:
    """The examples of a file, whose zlib checksum covers every byte. An empty file is a game without examples.

    Raises RecordError for a file that is damaged or foreign, OSError for one that cannot be opened.
    """
    data = Path(path).read_bytes()
    try:
        data = zlib.decompress(data) if data else data
    except zlib.error as error:
        raise RecordError(f"{path} is damaged: {error}") from None
    foreign = RecordError(f"{path} does not hold examples of {size}x{size} games in the layout of this program")
    if len(data) % example_dtype(size).itemsize:
        raise foreign
    examples = np.frombuffer(data, example_dtype(size))
    for name, value in zip(examples.dtype.names, _template(size)[0]):
        if name not in ("x", "pi", "z", "ownership", "checksum") and (examples[name] != value).any():
            raise foreign
    return examples


@functools.cache
def example_dtype(size: int) -> np.dtype:
    return _template(size).dtype


@functools.cache
def _template(size: int) -> np.ndarray:
    """[1] a record whose values are zero and whose other bytes are as they must be."""
    points = size * size
    values = [  # in the order of protobuf's deterministic serialisation: by name
        ("ownership", _BYTES_LIST, np.dtype((np.int8, points))),
        ("pi", _BYTES_LIST, np.dtype(("<f4", points + 1))),
        ("x", _BYTES_LIST, np.dtype((np.uint8, 2 * points + 1))),
        ("z", _FLOAT_LIST, np.dtype("<f4")),
    ]
    headers = [_feature_header(name, kind, dtype.itemsize) for name, kind, dtype in values]
    features_length = sum(len(header) for header in headers) + sum(dtype.itemsize for _, _, dtype in values)
    features_header = _header(1, features_length)
    fields = [("length", "<u8"), ("length_checksum", "<u4"), ("example", f"S{len(features_header)}")]
    for (name, _, dtype), header in zip(values, headers):
        fields += [(f"{name}_header", f"S{len(header)}"), (name, dtype)]
    template = np.zeros(1, np.dtype([*fields, ("checksum", "<u4")]))
    template["length"] = len(features_header) + features_length
    template["length_checksum"] = _masked_crc32c(template["length"].view(np.uint8)[None])
    template["example"] = features_header
    for (name, _, _), header in zip(values, headers):
        template[f"{name}_header"] = header
    return template


_BYTES_LIST, _FLOAT_LIST = 1, 2  # fields of tf.train.Feature


def _header(field: int, length: int) -> bytes:
    """What stands before a protobuf field of `length` bytes: its number with wire type 2, and the length as varint."""
    header = bytearray([field << 3 | 2])
    while length >= 128:
        header.append(length & 127 | 128)
        length >>= 7
    header.append(length)
    return bytes(header)


def _feature_header(name: str, kind: int, length: int) -> bytes:
    """All that stands before the value of Example.features.feature[name].<kind>.value[0]."""
    header = b""
    for field in (1, kind, 2):  # the value, in its list, in the Feature of the map's entry
        header = _header(field, length + len(header)) + header
    header = _header(1, len(name)) + name.encode() + header
    return _header(1, length + len(header)) + header


def _crc32c_table() -> np.ndarray:
    """[256] for the Castagnoli polynomial, bits reversed."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(0x82F63B78), table >> 1)
    return table


_CRC32C = _crc32c_table()


def _masked_crc32c(rows: np.ndarray) -> np.ndarray:
    """uint8 [T, L] -> uint32 [T]: the checksum of every row, masked as TFRecord wants it."""
    crc = np.empty(len(rows), np.uint32)
    _crc32c(rows, crc)
    return (crc >> 15 | crc << 17) + np.uint32(0xA282EAD8)


@njit
def _crc32c(rows, checksums):
    for k in range(len(rows)):
        crc = np.uint32(0xFFFFFFFF)
        for byte in rows[k]:
            crc = _CRC32C[(crc ^ byte) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        checksums[k] = ~crc
