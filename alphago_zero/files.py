"""Publication of files: a reader sees a whole file or none, whenever the writer is killed.

Every file of a run is written under a temporary name in its own folder, brought to the disk, and renamed.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TEMPORARY_SUFFIX = ".tmp"
_FEW = 8  # files that are synced one after the other; so many threads sync more


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`: the file written there takes the name `path` when the block ends well.

    >>> with atomic_path("game.sgf") as temporary:
    ...     temporary.write_text("(;GM[1])")
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _temporary(path) as temporary:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A name beside `path` that no reader looks at; what is left under it in the end is deleted."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def atomic_write_bytes(path: str | Path, data: bytes) -> None:
    atomic_write_files({path: data})


def atomic_write_text(path: str | Path, text: str) -> None:
    atomic_write_bytes(path, text.encode("utf-8"))


def atomic_write_files(contents: dict) -> None:
    """Publish {path: bytes}, each file whole or not at all; their folders are brought to the disk once."""
    folders = {Path(path).parent for path in contents}
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    if len(contents) > _FEW:  # a disk that is asked by many at a time syncs several times as many files
        with ThreadPoolExecutor(_FEW) as threads:
            list(threads.map(_write_and_rename, contents, contents.values()))
    else:
        for path, data in contents.items():
            _write_and_rename(path, data)
    for folder in folders:
        sync(folder)


def _write_and_rename(path: str | Path, data: bytes) -> None:
    with _temporary(Path(path)) as temporary:
        temporary.write_bytes(data)
        sync(temporary)
        os.replace(temporary, path)


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open a folder, and keeps its names without being asked
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(folder: str | Path) -> None:
    """Delete what killed writers left in `folder`. Only for a stage that alone writes there."""
    for leftover in Path(folder).glob(f".*{TEMPORARY_SUFFIX}"):
        leftover.unlink(missing_ok=True)
