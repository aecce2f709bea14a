"""Certificates for tests, made on the spot."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates that are good for a day."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self.root = Pair(folder / f"{name}.crt", folder / f"{name}.key")
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "1", "-subj", f"/CN={name}"),
            *("-keyout", str(self.root.key), "-out", str(self.root.certificate)),
        )

    def issue(self, name: str, *, hosts: str = "IP:127.0.0.1") -> Pair:
        """A certificate for ``name`` that is valid for ``hosts``."""
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        request = self._folder / f"{name}.csr"
        extensions = self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={hosts}\n")
        _openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", str(pair.key), "-out", str(request)),
        )
        _openssl(
            *("x509", "-req", "-in", str(request), "-days", "1", "-CAcreateserial"),
            *("-CA", str(self.root.certificate), "-CAkey", str(self.root.key)),
            *("-extfile", str(extensions), "-out", str(pair.certificate)),
        )
        return pair


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
