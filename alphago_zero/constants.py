"""Where a run keeps what it makes. The layout is that of the source documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

GAME_SUFFIX = ".tfrecord.zz"  # TFRecords squeezed by zlib


@dataclass(frozen=True)
class RunPaths:
    """The folders and files of one run directory; nothing is created here."""

    root: Path

    def __init__(self, root: str | Path = "."):
        object.__setattr__(self, "root", Path(root))

    @property
    def models(self) -> Path:
        """Exported models: `000010-pretty-tetra.json` and its sisters."""
        return self.root / "models"

    @property
    def best(self) -> Path:
        """One line: the name of the model that plays the self-play games."""
        return self.models / "best.txt"

    @property
    def estimator(self) -> Path:
        """The Estimator's own checkpoints and TensorBoard events."""
        return self.root / "estimator_working_dir"

    @property
    def data(self) -> Path:
        return self.root / "data"

    def selfplay(self, model: str) -> Path:
        """Games of `model` for training, a file a game."""
        return self.data / "selfplay" / model

    def holdout(self, model: str) -> Path:
        """Games of `model` kept out of training."""
        return self.data / "holdout" / model

    @property
    def chunks(self) -> Path:
        """Shuffled examples, and the ledger of the games that were taken in."""
        return self.data / "training_chunks"

    @property
    def damaged(self) -> Path:
        """Game files that could not be read."""
        return self.data / "damaged"

    def sgf_clean(self, model: str) -> Path:
        return self.data / "sgf" / model / "clean"

    def sgf_full(self, model: str) -> Path:
        """Games with a comment at every move."""
        return self.data / "sgf" / model / "full"

    @property
    def left_behind(self) -> Path:
        """In a run that went on elsewhere: numbers of the games that lie on the first computer only."""
        return self.root / "left_behind.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def spent(self) -> Path:
        """Seconds that the generation under way has cost."""
        return self.logs / "unfinished.json"


def game_files(folder: Path) -> list[Path]:
    """The games below `data/selfplay` or `data/holdout`, sorted: files named by a number (a copy of one is no game)."""
    files = folder.glob(f"*/*{GAME_SUFFIX}")
    return sorted(path for path in files if path.name.removesuffix(GAME_SUFFIX).isdecimal())
