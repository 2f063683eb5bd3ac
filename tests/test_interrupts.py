"""Ctrl-C ends what a person started, wherever it comes."""

import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, time
from alphago_zero.interrupts import obey_signals

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

obey_signals()
try:
    Finalized()
    time.sleep(20)
except KeyboardInterrupt:
    print("stopped")
"""


def test_ctrl_c_in_a_finalizer_comes_again():
    root = Path(__file__).parent.parent
    finished = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, timeout=15)
    assert (finished.stdout, finished.stderr) == ("stopped\n", "")


AT_EXIT = """
import os, signal, weakref
from alphago_zero.interrupts import let_signals_end, obey_signals

class Kept:
    pass

kept = Kept()
weakref.finalize(kept, os.kill, os.getpid(), signal.SIGTERM)  # called while Python shuts down
obey_signals()
let_signals_end()
"""


def test_a_process_that_shuts_down_is_ended_without_a_word():
    root = Path(__file__).parent.parent
    finished = subprocess.run([sys.executable, "-c", AT_EXIT], cwd=root, capture_output=True, text=True, timeout=15)
    assert (finished.returncode, finished.stdout, finished.stderr) == (-signal.SIGTERM, "", "")
