"""
Modules from elsewhere that most runs never use, loaded when one is: `libraries.np.zeros(3)`.

Only for what would be loaded in vain, most of all by `qmd search`: numpy takes 50 ms, fastembed a
second.
"""

from __future__ import annotations

import sys

from qmd import lazy

# As typing has it, whose import would take longer than all else that is done here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import dataclasses
    import difflib
    import hashlib
    import hmac
    import inspect
    import json
    import logging
    import secrets
    import shlex
    import shutil
    import socket
    import tempfile
    from concurrent import futures
    from importlib import metadata
    from importlib import util as importlib_util
    from urllib import request

    import click
    import fastembed
    import filelock
    import jwt
    import loguru
    import numpy as np
    import onnxruntime
    import platformdirs
    import pypdfium2
    import rapidfuzz
    import sqlite_utils
    import tomli as tomllib
    from fastembed.rerank import cross_encoder
    from sqlite_utils import migrations

__all__ = [
    "click",
    "cross_encoder",
    "dataclasses",
    "difflib",
    "fastembed",
    "filelock",
    "futures",
    "hashlib",
    "hmac",
    "importlib_util",
    "inspect",
    "json",
    "jwt",
    "logging",
    "loguru",
    "metadata",
    "migrations",
    "np",
    "onnxruntime",
    "platformdirs",
    "pypdfium2",
    "rapidfuzz",
    "request",
    "secrets",
    "shlex",
    "shutil",
    "socket",
    "sqlite_utils",
    "tempfile",
    "tomllib",
]

#: Where a name is another than that of the module.
_PLACES = {
    "cross_encoder": "fastembed.rerank.cross_encoder",
    "futures": "concurrent.futures",
    "importlib_util": "importlib.util",
    "metadata": "importlib.metadata",
    "migrations": "sqlite_utils.migrations",
    "np": "numpy",
    "request": "urllib.request",
    "tomllib": "tomllib" if sys.version_info >= (3, 11) else "tomli",
}

__getattr__ = lazy.load(__name__, libraries=dict(zip(__all__, __all__, strict=True)) | _PLACES)
