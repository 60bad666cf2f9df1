"""
Build what other programs install: the bundle for MCP clients, and the entry of the MCP registry.

    python integrations/build.py mcpb                               # dist/qmd-VERSION.mcpb
    python integrations/build.py server-json --repository OWNER/NAME  # dist/server.json

The bundle has the wheel of this working copy, so it needs no release of qmd in a package index;
`uv`, which clients bring, installs the wheel with the versions of constraints.txt. Name, version,
description, Python versions and tools come from the project and are written nowhere else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import qmd
from qmd.tools.toolsets import select

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
BUNDLE = ROOT / "integrations/mcpb"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: Of the schema of the MCP registry that `server_json` follows.
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
#: All entries of an archive have this time, so that the same files make the same archive.
_TIME = (2026, 1, 1, 0, 0, 0)


def manifest() -> dict[str, Any]:
    """The bundle's manifest: integrations/mcpb/manifest.json, with the facts of the project."""
    fixed = json.loads((BUNDLE / "manifest.json").read_text(encoding="utf-8"))
    compatibility = {**fixed["compatibility"], "runtimes": {"python": PROJECT["requires-python"]}}
    tools = [{"name": tool.name, "description": tool.description} for tool in select(["qmd"]).tools]
    facts = {
        "version": qmd.__version__,
        "description": PROJECT["description"],
        "keywords": PROJECT["keywords"],
        "compatibility": compatibility,
        "tools": tools,
    }
    return {**fixed, **facts}


def bundle_project(wheel: str) -> str:
    """The pyproject.toml of the bundle: it depends on the wheel beside it alone."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    constraints = [line for line in lines if not line.startswith("#")]
    return f"""\
[project]
name = "qmd-bundle"
version = "{qmd.__version__}"
requires-python = "{PROJECT["requires-python"]}"
dependencies = ["{PROJECT["name"]}"]

[tool.uv]
package = false
constraint-dependencies = {json.dumps(constraints, indent=2)}

[tool.uv.sources]
{PROJECT["name"]} = {{ path = {json.dumps(wheel)} }}
"""


def build_wheel(directory: Path) -> Path:
    """The wheel of this working copy."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    done = subprocess.run(
        [*command, str(directory)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"integrations/build.py: no wheel:\n{done.stderr}")
    (wheel,) = directory.glob("*.whl")
    return wheel


def build_bundle(directory: Path) -> Path:
    """Write ``qmd-VERSION.mcpb`` into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / f"qmd-{qmd.__version__}.mcpb"
    with tempfile.TemporaryDirectory() as scratch:
        wheel = build_wheel(Path(scratch))
        files = {
            "manifest.json": json.dumps(manifest(), indent=2, ensure_ascii=False).encode(),
            "pyproject.toml": bundle_project(wheel.name).encode(),
            "server.py": (BUNDLE / "server.py").read_bytes(),
            "LICENSE": (ROOT / "LICENSE").read_bytes(),
            wheel.name: wheel.read_bytes(),
        }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)
    return target


def server_json(repository: str, bundle: Path) -> dict[str, Any]:
    """
    The entry of the MCP registry for a release on GitHub that has the bundle.

    Args:
        repository: OWNER/NAME. The registry accepts the name `io.github.OWNER/…` from OWNER alone.
        bundle: The file, whose hash clients check.
    """
    owner, _, name = repository.partition("/")
    if not owner or not name or "/" in name:
        raise SystemExit(f"integrations/build.py: {repository!r} is not OWNER/NAME.")
    url = f"https://github.com/{repository}"
    return {
        "$schema": SCHEMA,
        "name": f"io.github.{owner}/{name}",
        "title": "qmd: your notes",
        "description": PROJECT["description"],
        "version": qmd.__version__,
        "repository": {"url": url, "source": "github"},
        "packages": [
            {
                "registryType": "mcpb",
                # The registry demands "mcp" in this address.
                "identifier": f"{url}/releases/download/v{qmd.__version__}/{bundle.name}",
                "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
                "transport": {"type": "stdio"},
            }
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("what", choices=["mcpb", "server-json"])
    parser.add_argument("--repository", help="OWNER/NAME on GitHub, for server-json")
    parser.add_argument("--out", type=Path, default=DIST, help="the directory to write into")
    arguments = parser.parse_args()
    bundle = arguments.out / f"qmd-{qmd.__version__}.mcpb"
    if arguments.what == "mcpb" or not bundle.exists():
        bundle = build_bundle(arguments.out)
        print(bundle)
    if arguments.what == "server-json":
        if arguments.repository is None:
            parser.error("server-json needs --repository OWNER/NAME")
        entry = json.dumps(server_json(arguments.repository, bundle), indent=2, ensure_ascii=False)
        (arguments.out / "server.json").write_text(entry + "\n", encoding="utf-8")
        print(arguments.out / "server.json")


if __name__ == "__main__":
    main()
