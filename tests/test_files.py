"""A file is published whole or not at all."""

import os
import subprocess
import sys

import pytest

from alphago_zero.files import atomic_path, atomic_write_bytes, atomic_write_text, remove_temporaries


def test_a_published_file_holds_what_was_written_and_nothing_else_stays(tmp_path):
    atomic_write_text(tmp_path / "new" / "best.txt", "Tetra — 囲碁\n")
    atomic_write_bytes(tmp_path / "new" / "best.txt", b"again")
    assert (tmp_path / "new" / "best.txt").read_bytes() == b"again"
    assert os.listdir(tmp_path / "new") == ["best.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "game.sgf"
    target.write_text("old")
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_text("half a ga")
        raise RuntimeError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["game.sgf"]


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_killed_writer_leaves_the_old_file_and_its_leftover_can_be_removed(tmp_path):
    target = tmp_path / "game.sgf"
    target.write_text("old")
    program = (
        "import os, signal, sys; from alphago_zero.files import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('half a ga')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(target)], check=False).returncode == -9
    assert target.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2
    remove_temporaries(tmp_path)
    assert os.listdir(tmp_path) == ["game.sgf"]
