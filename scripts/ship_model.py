#!/usr/bin/env python
"""`python scripts/ship_model.py runs/fast best`: make a model the one that comes with the program, named `shipped`.

It is shipped as it plays: description, inference graph and 8-bit network, without the checkpoint.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import argh

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from alphago_zero.constants import RunPaths  # noqa: E402
from alphago_zero.model import SHIPPED, load_graph, model_file, resolve_model  # noqa: E402

_SUFFIXES = (".json", ".pb", ".int8", ".int8.xml", ".int8.bin")


def ship(run: str, model: str) -> None:
    """Copy MODEL of RUN into the package, in the place of the one that was there."""
    prefix = resolve_model(model, RunPaths(run))
    load_graph(prefix)  # is it whole?
    shutil.rmtree(SHIPPED, ignore_errors=True)
    SHIPPED.mkdir()
    for suffix in _SUFFIXES:
        if model_file(prefix, suffix).exists():
            shutil.copyfile(model_file(prefix, suffix), model_file(SHIPPED / prefix.name, suffix))
    size = sum(path.stat().st_size for path in SHIPPED.iterdir())
    print(f"{SHIPPED / prefix.name}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    argh.dispatch_command(ship)
