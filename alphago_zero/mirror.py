"""A stage on a computer without the run directory: the files that it reads go there, what it wrote comes back.

In: a run directory, and for each stage a list of its files. Out: the stage's files, published in the run directory in
the order in which the stage itself publishes them, so that a kill at any moment leaves what one of the stage leaves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from alphago_zero.constants import RunPaths
from alphago_zero.files import atomic_write_files, sync
from alphago_zero.model import SUFFIXES, list_models, model_file
from alphago_zero.preprocessing import holdout_files, ledger_path, read_ledger, window
from alphago_zero.quantization import example_files

_AT_A_TIME = 64_000_000  # bytes
_INFERENCE = (".json", ".pb", ".int8", ".int8.xml", ".int8.bin")  # what a player needs of a model


def files_to_learn(paths: RunPaths, config) -> list[Path]:
    """The window, the last checkpoint, the newest model's description, and games to measure 8 bits on."""
    chunks = [paths.chunks / chunk.file for chunk in window(read_ledger(paths), config.training)]
    newest = model_file(list_models(paths)[-1], ".json")
    return _existing([*example_files(paths), *chunks, ledger_path(paths), *checkpoint_files(paths), newest])


def files_to_validate(paths: RunPaths, models: list[Path]) -> list[Path]:
    """Both models' checkpoints and the games kept out of training."""
    parts = [model_file(model, suffix) for model in models for suffix in SUFFIXES if suffix != ".pb"]
    return _existing([*holdout_files(paths, 5), *parts])


def inference_files(prefix: Path) -> dict[str, bytes]:
    """{suffix: content} of what a player needs."""
    return {path.name.removeprefix(prefix.name): path.read_bytes() for path in _existing_parts(prefix)}


def _existing_parts(prefix: Path) -> list[Path]:
    return _existing([model_file(prefix, suffix) for suffix in _INFERENCE])


def _existing(files: list[Path]) -> list[Path]:
    return [path for path in files if path.is_file()]


def checkpoint_files(paths: RunPaths) -> list[Path]:
    """The last checkpoint, and the file that names it."""
    state = paths.estimator / "checkpoint"
    name = re.search(r'^model_checkpoint_path: "(?:.*/)?(.+)"', state.read_text(encoding="utf-8"), re.MULTILINE)
    return [*sorted(paths.estimator.glob(f"{name[1]}.*" if name else "")), state]


class Sent:
    """Which files of a run a computer has already."""

    def __init__(self, paths: RunPaths):
        self._paths = paths
        self._versions: dict[str, tuple] = {}

    def parcels(self, files: list[Path]) -> Iterator[dict[str, bytes]]:
        """What is missing there, in parcels of moderate size."""
        parcel, size = {}, 0
        for path in files:
            name = path.relative_to(self._paths.root).as_posix()
            if self._versions.get(name) != _version(path):
                self.note(name)
                parcel[name] = path.read_bytes()
                size += len(parcel[name])
            if size > _AT_A_TIME:
                yield parcel
                parcel, size = {}, 0
        if parcel:
            yield parcel

    def note(self, name: str) -> None:
        self._versions[name] = _version(self._paths.root / name)


def _version(path: Path) -> tuple:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


class Mirror:
    """A folder that holds a copy of a part of a run directory, as a stage finds it there."""

    def __init__(self, folder: Path):
        self.paths = RunPaths(folder)

    def receive(self, parcel: dict[str, bytes]) -> None:
        atomic_write_files({self.paths.root / name: data for name, data in parcel.items()})

    def forget_but(self, names: list[str]) -> None:
        """Delete games and chunks that are not among these: the window moves on."""
        for path in self._files(self.paths.data):
            if path.relative_to(self.paths.root).as_posix() not in names:
                path.unlink()

    def snapshot(self) -> dict[str, tuple]:
        """What a stage may change, and which version of it is there."""
        files = [*self._files(self.paths.models), *self._files(self.paths.estimator)]
        return {path.relative_to(self.paths.root).as_posix(): _version(path) for path in files}

    @staticmethod
    def _files(folder: Path) -> list[Path]:
        return [path for path in folder.rglob("[!.]*") if path.is_file()]


def publication_order(names: list[str]) -> list[str]:
    """A checkpoint's parts before the file that names it, and a model's before its description."""

    def rank(name: str) -> int:
        return 2 if name.endswith(".json") else int(name.endswith("/checkpoint"))

    return sorted(names, key=rank)


def publish(paths: RunPaths, name: str, data: bytes) -> None:
    """One file that a stage wrote elsewhere. What TensorBoard may be reading grows instead of being replaced."""
    path = paths.root / name
    if ".tfevents." in name and path.exists():
        with open(path, "ab") as file:
            file.write(data[file.tell() :])
        sync(path)
    else:
        atomic_write_files({path: data})


def drop_old_checkpoints(paths: RunPaths) -> None:
    """Those that the file `checkpoint` does not name any more."""
    named = set(re.findall(r'"(?:.*/)?(.+)"', (paths.estimator / "checkpoint").read_text(encoding="utf-8")))
    for path in paths.estimator.glob("model.ckpt-*"):
        if path.name.rpartition(".")[0] not in named:
            path.unlink(missing_ok=True)


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
