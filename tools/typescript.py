"""Write what TypeScript knows of the API: the OpenAPI document, and from it the types of clients/typescript.

uv run python tools/typescript.py [--check]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from recollect.doors.http.app import create_app
from recollect.settings import Settings

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "clients" / "typescript"
TYPES = CLIENT / "src" / "schema.d.ts"
GENERATOR = CLIENT / "node_modules" / ".bin" / "openapi-typescript"


def write_document(path: Path) -> None:
    """Write the OpenAPI document; the settings change nothing in it."""
    path.write_text(json.dumps(create_app(Settings()).openapi(), indent=1, sort_keys=True), encoding="utf-8")


def generate(target: Path) -> None:
    """Write the types of the document of this checkout."""
    node = shutil.which("node")
    if node is None or not GENERATOR.exists():
        raise SystemExit("The types are made with Node 20.19 or newer: install it, then run `make console`.")
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "openapi.json"
        write_document(document)
        # A field with a default may be left out of a request: only what the document calls required is.
        command = [node, str(GENERATOR), str(document), "-o", str(target), "--default-non-nullable=false"]
        subprocess.run(command, cwd=CLIENT, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with what is there, and write nothing")
    if not parser.parse_args().check:
        generate(TYPES)
        return
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "schema.d.ts"
        generate(fresh)
        if fresh.read_bytes() != TYPES.read_bytes():
            sys.exit(f"{TYPES.relative_to(ROOT)} is not what the API says: run `python tools/typescript.py`.")


if __name__ == "__main__":
    main()
