"""`pip install .` gives the commands `alphago-zero` and `alphago-zero-train`; `scripts/train` needs no installation."""

import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent


def requirements(name):
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


setup(
    name="alphago-zero",
    version=re.search(r'__version__ = "(.+)"', (ROOT / "alphago_zero/__init__.py").read_text(encoding="utf-8"))[1],
    description="AlphaGo Zero for 9x9 Go: learn the game from nothing on the machine you have",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=["alphago_zero", "alphago_zero.web"],
    package_data={"alphago_zero": ["shipped/*"], "alphago_zero.web": ["static/*"]},
    python_requires=">=3.9",
    install_requires=requirements("requirements.txt"),
    # 2.51 is the last Ray for Python 3.9; all computers of a cluster need the same.
    extras_require={"ray": ["ray==2.51.*"], "dev": requirements("requirements-dev.txt")},
    entry_points={
        "console_scripts": [
            "alphago-zero = alphago_zero.controller:main",
            "alphago-zero-train = alphago_zero.train:main",
        ]
    },
)
