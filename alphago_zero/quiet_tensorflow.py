"""TensorFlow without its noise: `from alphago_zero.quiet_tensorflow import tf`.

The Estimator is deprecated, and TensorFlow says so many times; 2.15 is the last release that has it. Silenced are
TensorFlow's own log and the warnings raised while it is imported; its errors are not.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read once, when the library is loaded
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # TensorFlow turns it on only where the CPU has AVX512

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow as tf  # noqa: F401
        import tensorflow_estimator  # noqa: F401  else `tf.estimator` loads it, and warns, at its first use
except ImportError as error:
    raise ImportError(
        "TensorFlow 2.15 is needed to train, and to play where OpenVINO is missing; it needs Python 3.9 to 3.11 "
        f"(this is {sys.version_info.major}.{sys.version_info.minor}): {error}"
    ) from None

logging.getLogger("tensorflow").setLevel(logging.ERROR)
