"""Build all files of a release into one folder, and list their hashes.

    python tools/release.py             # into dist/
    python tools/release.py --check     # build twice, and compare byte by byte

Wheels and the sdist, the data wheel of the local model, the integrations, the Dify plugin, the npm package, the
context of the image (its requirements with the hashes of the lock), the list of all components (SBOM), release notes
out of CHANGELOG.md, and SHA256SUMS.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EPOCH = 315532800
"""The time that every file in every package has: the first that a zip archive knows."""
ENVIRONMENT = {"SOURCE_DATE_EPOCH": str(EPOCH), "CONSOLE_REQUIRED": "1"}
IMAGE_EXTRAS = ("server", "mcp", "local", "chinese", "cold", "neo4j", "opensearch", "traces")
SUMS, NOTES, COMPONENTS, CONTEXT = "SHA256SUMS", "NOTES.md", "components.cdx.json", "image.tar"


def run(*command: str, cwd: Path = ROOT) -> str:
    """Run a program of the build; its output is shown only if it fails."""
    ran = subprocess.run(command, cwd=cwd, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{ran.stdout[-2000:]}{ran.stderr[-4000:]}")
    return ran.stdout


def read_version() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def packaged_integrations() -> list[Path]:
    """Return the integrations that are separate packages."""
    projects = sorted(ROOT.glob("integrations/*/pyproject.toml"))
    return [path.parent for path in projects if "build-system" in tomllib.loads(path.read_text(encoding="utf-8"))]


def build_wheels(target: Path) -> None:
    """Build the wheels that Python users install."""
    run(sys.executable, "tools/model_files.py")
    run("uv", "build", "--quiet", "--out-dir", str(target))
    for project in (ROOT / "packages" / "minilm", *packaged_integrations()):
        run("uv", "build", "--quiet", "--wheel", "--out-dir", str(target), str(project))


def build_others(target: Path) -> None:
    """Build the plugin of Dify and the package for JavaScript."""
    run(sys.executable, "integrations/dify/pack.py", str(target))
    client = ROOT / "clients" / "typescript"
    run("npm", "run", "--silent", "build", cwd=client)
    run("npm", "pack", "--silent", "--pack-destination", str(target), cwd=client)


def export(form: str, *extras: str) -> str:
    """Write what the lock holds for some extras, without the project itself and its own data."""
    chosen = [word for extra in extras for word in ("--extra", extra)]
    apart = ["--no-emit-project", "--no-emit-package", "recollect-minilm", "--no-header", "--no-annotate"]
    words = apart if form == "requirements.txt" else []
    return run("uv", "export", "--quiet", "--frozen", "--format", form, *chosen, *words)


def write_components() -> str:
    """List all components with their hashes, as CycloneDX; a number and a time that differ each run are left out."""
    listed = json.loads(export("cyclonedx1.5", "all"))
    listed.pop("serialNumber", None)
    listed.get("metadata", {}).pop("timestamp", None)
    return json.dumps(listed, indent=1, sort_keys=True) + "\n"


def pack_context(target: Path) -> None:
    """Pack what `docker build` needs, and nothing else."""
    wheels = sorted([*target.glob("recollect_memory-*.whl"), *target.glob("recollect_minilm-*.whl")])
    files = {f"dist/{wheel.name}": wheel.read_bytes() for wheel in wheels}
    files["deploy/Dockerfile"] = (ROOT / "deploy" / "Dockerfile").read_bytes()
    files["requirements.txt"] = export("requirements.txt", *IMAGE_EXTRAS).encode()
    with tarfile.open(target / CONTEXT, "w") as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), EPOCH, 0o644
            archive.addfile(entry, io.BytesIO(content))


def write_notes(changelog: str, version: str) -> str:
    """Return the section of a version in the changelog, or the unreleased section if the version has none."""
    sections = changelog.split("\n## [")[1:]
    named = {each.partition("]")[0]: each.partition("\n")[2].strip() for each in sections}
    text = named.get(version) or named["Unreleased"]
    return f"# Recollect {version}\n\n{text}\n"


def build(target: Path) -> None:
    """Build everything into an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    build_wheels(target)
    build_others(target)
    pack_context(target)
    (target / COMPONENTS).write_text(write_components(), encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (target / NOTES).write_text(write_notes(changelog, read_version()), encoding="utf-8")
    (target / ".gitignore").unlink(missing_ok=True)
    (target / SUMS).write_text(write_sums(target), encoding="utf-8")


def write_sums(target: Path) -> str:
    """Write what `sha256sum --check` reads."""
    files = sorted(path for path in target.iterdir() if path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def compare(first: Path, second: Path) -> list[str]:
    """List the lines in which two builds differ."""
    one, other = ((folder / SUMS).read_text(encoding="utf-8").splitlines() for folder in (first, second))
    return sorted({*one} ^ {*other})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--target", type=Path, default=ROOT / "dist")
    asked = parser.parse_args()
    build(asked.target)
    if asked.check:
        with tempfile.TemporaryDirectory() as folder:
            build(Path(folder) / "again")
            if differing := compare(asked.target, Path(folder) / "again"):
                raise SystemExit("Two builds differ:\n" + "\n".join(differing))
    print((asked.target / SUMS).read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
