"""scripts/train and scripts/test on computers that have little: what they ask of them, and what they say."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"
TOOLS = ("sh", "dirname", "cmp", "cp", "mv", "rm", "mkdir", "cat", "touch", "uname", "id")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")


# A Python whose pip notes what it is asked for. `-m venv --clear DIR` makes a copy of it there.
PYTHON = """#!/bin/sh
case "$*" in
    *version_info*) exit {unsuitable} ;;
    --version) echo Python 3.11 ;;
    "-m venv --clear "*)
        rm -rf "$4"
        mkdir -p "$4/bin" "$4/lib/python3.11/site-packages"
        cp "$0" "$4/bin/python"
        ;;
    "-m pip install "*)
        echo "$*" >> "{log}"
        if [ -e "{log}.broken" ]; then exit 1; fi
        ;;
    */train.py*) echo "$PWD: $*" ;;
esac
"""


class Computer:
    """A clone, and a PATH with nothing but the tools of a shell and what a test puts there."""

    def __init__(self, folder):
        self.clone, self.path, self.log = folder / "a clone", folder / "bin", folder / "pip.log"
        self.elsewhere = folder / "elsewhere"
        for path in (self.clone, self.path, self.elsewhere):
            path.mkdir()
        shutil.copytree(SCRIPTS, self.clone / "scripts")
        (self.clone / "requirements.txt").write_text("numpy\n")
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool))

    @property
    def venv(self):
        return self.clone / ".venv"

    def install_python(self, name="python3.11", suitable=True):
        self.add(name, PYTHON.format(unsuitable=0 if suitable else 1, log=self.log))

    def add(self, name, text):
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def train(self, *arguments):
        command = [str(self.clone / "scripts/train"), *arguments]
        environment = {"PATH": str(self.path), "CDPATH": "/tmp", "HOME": str(self.elsewhere)}
        return subprocess.run(command, cwd=self.elsewhere, env=environment, capture_output=True, text=True)

    @property
    def installations(self):
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


@pytest.fixture
def computer(tmp_path):
    return Computer(tmp_path)


@pytest.mark.parametrize("names", [[], ["python3", "python3.12"]], ids=["none", "only newer ones"])
def test_where_there_is_no_suitable_python_one_line_says_what_to_do(computer, names):
    for name in names:
        computer.install_python(name, suitable=False)
    run = computer.train()
    assert run.returncode == 1 and run.stdout == ""
    assert len(run.stderr.splitlines()) == 1
    for word in ("scripts/train", "Python 3.9 to 3.11", "uv", "pyenv", "conda"):
        assert word in run.stderr
    assert not computer.venv.exists()


def test_a_first_run_installs_and_a_second_one_does_not(computer):
    computer.install_python()
    first = computer.train("--generations", "2 or 3")
    assert first.returncode == 0, first.stderr
    assert first.stdout == f"{computer.elsewhere}: {computer.clone}/train.py --generations 2 or 3\n"
    assert computer.installations == 1 and str(computer.venv) in first.stderr
    second = computer.train()
    assert (second.returncode, second.stderr) == (0, "") and computer.installations == 1


def test_changed_requirements_are_installed(computer):
    computer.install_python()
    computer.train()
    (computer.clone / "requirements.txt").write_text("numpy\nnumba\n")
    computer.train()
    assert computer.installations == 2


def test_an_installation_that_failed_is_made_up_for(computer):
    computer.install_python()
    broken = computer.log.with_name("pip.log.broken")
    broken.touch()
    assert computer.train().returncode != 0
    broken.unlink()
    assert computer.train().returncode == 0
    assert computer.installations == 2
    assert computer.train().returncode == 0
    assert computer.installations == 2


def test_a_python_that_is_gone_is_replaced(computer):
    computer.install_python()
    computer.train()
    (computer.venv / "bin/python").unlink()
    assert computer.train().returncode == 0
    assert computer.installations == 2


def test_a_package_that_pip_was_writing_when_it_was_stopped_is_installed_again(computer):
    computer.install_python()
    broken = computer.log.with_name("pip.log.broken")
    broken.touch()
    computer.train()
    packages = computer.venv / "lib/python3.11/site-packages"
    for name in ("whole-1.0.dist-info", "half-1.0.dist-info"):
        (packages / name).mkdir()
        (packages / name / "RECORD").touch()
    (packages / "whole-1.0.dist-info/INSTALLER").touch()
    broken.unlink()
    assert computer.train().returncode == 0
    assert [path.name for path in packages.iterdir()] == ["whole-1.0.dist-info"]
    assert computer.installations == 2


def test_where_only_uv_is_there_it_fetches_a_python(computer):
    computer.install_python("python3", suitable=False)
    computer.add(
        "uv", f'#!/bin/sh\nfor last; do :; done\nmkdir -p "$last/bin"\ncp "{computer.path}/good" "$last/bin/python"\n'
    )
    computer.install_python("good")
    run = computer.train()
    assert run.returncode == 0, run.stderr
    assert "uv" in run.stderr and computer.installations == 1
