"""Generates ``hekla/v1`` anew into a temporary folder and compares it with what is there."""

from __future__ import annotations

import filecmp
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent


def generate(out: Path) -> None:
    """Write everything that is generated from ``protos`` below ``out``."""
    protos = sorted((ROOT / "protos/hekla/v1").glob("*.proto"))
    services = [path for path in protos if path.stem.endswith("_service")]
    _protoc(protos, f"--python_out={out}", f"--mypy_out=quiet:{out}")
    _protoc(services, f"--grpc_python_out={out}", f"--mypy_grpc_out=quiet,only_sync:{out}")


def _protoc(files: list[Path], *flags: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", ROOT / "protos", *flags, *files],
        check=True,
        cwd=ROOT,
        # protoc finds its plugins beside the Python that runs it
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )


def differences(fresh: Path, committed: Path) -> list[str]:
    """Names of files that are missing, left over or not the same."""
    names = {path.name for folder in (fresh, committed) for path in folder.glob("*_pb2*.py*")}
    _, changed, absent = filecmp.cmpfiles(fresh, committed, sorted(names), shallow=False)
    return sorted([*changed, *absent])


def main() -> None:
    """Regenerate with ``--write``, else compare."""
    committed = ROOT / "hekla/v1"
    if sys.argv[1:] == ["--write"]:
        for stale in committed.glob("*_pb2*.py*"):
            stale.unlink()
        generate(ROOT)
        return
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        different = differences(Path(folder) / "hekla/v1", committed)
    if different:
        sys.exit(f"hekla/v1 differs from protos/: {', '.join(different)} (run `make protos`)")


if __name__ == "__main__":
    main()
