"""Pack the plugin with the wheel of Recollect that it needs: the same sources always give the same bytes."""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARTS = ("manifest.yaml", "*.md", "requirements.txt", "main.py", "memory_tool.py", "provider/*", "tools/*", "_assets/*")
MAX_BYTES = 50 * 2**20  # what Dify's daemon takes unpacked, unless it is told otherwise


def collect(wheel: Path) -> dict[str, bytes]:
    """Gather the package's files by name, the wheel among them."""
    found = [path for part in PARTS for path in HERE.glob(part) if path.is_file()]
    files = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in found}
    files["requirements.txt"] += f"./wheels/{wheel.name}\n".encode()
    return files | {f"wheels/{wheel.name}": wheel.read_bytes()}


def pack(target: Path) -> Path:
    """Build the wheel, and write the package into a folder; return where it lies."""
    with tempfile.TemporaryDirectory() as folder:
        build = ["uv", "build", "--quiet", "--wheel", "--out-dir", folder]
        subprocess.run(build, check=True, cwd=HERE.parents[1], env=os.environ | {"SOURCE_DATE_EPOCH": "315532800"})
        (wheel,) = Path(folder).glob("*.whl")
        files = collect(wheel)
    if sum(map(len, files.values())) > MAX_BYTES:
        raise SystemExit(f"The package is larger than {MAX_BYTES} bytes: Dify would refuse it.")
    package = target / f"recollect-{wheel.name.split('-')[1]}.difypkg"
    package.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(package, "w") as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return package


if __name__ == "__main__":
    sys.stdout.write(f"{pack(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / 'dist')}\n")
