"""OpenVINO without its telemetry: `from alphago_zero.quiet_openvino import openvino`.

Merely being imported, it would report to its makers through the package openvino_telemetry, and leave an identity in
the user's home. It does neither where that package cannot be imported; nor does nncf, imported after this module.
"""

from __future__ import annotations

import sys

sys.modules["openvino_telemetry"] = None  # "there is no such package"

import openvino  # noqa: E402, F401
