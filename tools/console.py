"""Build the console: install as locked, build into the package, compare two builds, measure. Standard library alone.

python tools/console.py [install | build | check | sizes | setup]

The build backend's hook (tools/console_hook.py) uses it, too, and nothing else is installed there.
"""

from __future__ import annotations

import argparse
import filecmp
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "console"
CLIENT = ROOT / "clients" / "typescript"
PAGES = ROOT / "src" / "recollect" / "doors" / "http" / "pages"
"""The folder of the built files; git ignores them, and the server reads them."""
FIRST_LOAD_BYTES, ALL_BYTES = 140_000, 350_000
"""What the page may weigh, compressed: before anything is seen, and with every screen."""
LOADED = re.compile(r'(?:src|href)="\./(assets/[^"]+)"')
OLDEST_NODE = (20, 19)
NO_NODE = "The console is built with Node 20.19 or newer, which is not here"


def find_node() -> str | None:
    """Find a Node that is new enough."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", said)
    return node if found and (int(found[1]), int(found[2])) >= OLDEST_NODE else None


def install(folder: Path) -> None:
    """Install a folder's packages as they are locked; a lock that would change is an error."""
    lock, stamp = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if stamp.exists() and stamp.stat().st_mtime > max(lock.stat().st_mtime, (folder / "package.json").stat().st_mtime):
        return
    before = lock.read_bytes()
    # `npm ci` refuses a lock that lacks the optional packages of other platforms, and `install` may add them to it.
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, check=True)
    if find_changed(before, lock.read_bytes()):
        raise SystemExit(f"{lock.relative_to(ROOT)} is not what package.json asks for: commit what npm made of it.")
    lock.write_bytes(before)
    stamp.touch()


def find_changed(before: bytes, after: bytes) -> list[str]:
    """List the packages that a lock has otherwise than before; those that were added count unless they are optional."""
    old, new = (json.loads(lock)["packages"] for lock in (before, after))
    changed = [name for name, entry in old.items() if new.get(name) != entry]
    return changed + [name for name in new.keys() - old.keys() if not new[name].get("optional")]


def build_into(folder: Path) -> None:
    """Build the console into a folder that is not there yet."""
    vite = SOURCES / "node_modules" / "vite" / "bin" / "vite.js"
    command = ["node", str(vite), "build", "--logLevel", "warn", "--outDir", str(folder), "--emptyOutDir"]
    subprocess.run(command, cwd=SOURCES, env=os.environ | {"NODE_ENV": "production"}, check=True)


def build() -> None:
    """Build the console into the package; readers see the old one or the new one, never a part."""
    install(SOURCES)
    PAGES.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SOURCES / "node_modules") as folder:
        fresh = Path(folder) / "pages"
        build_into(fresh)
        if PAGES.exists() and not differences(fresh, PAGES):
            return
        old = Path(folder) / "old"
        if PAGES.exists():
            PAGES.rename(old)
        fresh.rename(PAGES)


def differences(one: Path, other: Path) -> list[str]:
    """List the files that are not the same, byte by byte, in two folders."""
    names = {str(path.relative_to(folder)) for folder in (one, other) for path in folder.rglob("*") if path.is_file()}
    _, unequal, missing = filecmp.cmpfiles(one, other, sorted(names), shallow=False)
    return sorted([*unequal, *missing])


def check() -> None:
    """Build twice, and compare."""
    install(SOURCES)
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder) / "one", Path(folder) / "other"
        build_into(one)
        build_into(other)
        unlike = differences(one, other)
        if unlike:
            raise SystemExit(f"Two builds differ: {', '.join(unlike)}")
        print(f"Two builds are the same, {sum(1 for path in one.rglob('*') if path.is_file())} files.")


def sizes(folder: Path) -> tuple[int, int]:
    """Measure what a page loads at first and what all files weigh, in bytes after gzip."""
    weights = {
        str(path.relative_to(folder)): len(gzip.compress(path.read_bytes(), 9, mtime=0))
        for path in folder.rglob("*")
        if path.is_file()
    }
    first = {"index.html", *LOADED.findall((folder / "index.html").read_text(encoding="utf-8"))}
    return sum(weights[name] for name in first), sum(weights.values())


def show_sizes() -> None:
    first, everything = sizes(PAGES)
    print(f"first load {first / 1000:.1f} of {FIRST_LOAD_BYTES // 1000} kB, all {everything / 1000:.1f} of ", end="")
    print(f"{ALL_BYTES // 1000} kB (gzip)")
    if first > FIRST_LOAD_BYTES or everything > ALL_BYTES:
        raise SystemExit("The console weighs more than its budget.")


def install_both() -> None:
    for folder in (SOURCES, CLIENT):
        install(folder)


def setup() -> None:
    """Install and build, where Node is there."""
    install_both()
    build()


WORK = {"install": install_both, "build": build, "check": check, "sizes": show_sizes, "setup": setup}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=WORK, nargs="?", default="build")
    asked = parser.parse_args().work
    if asked != "sizes" and find_node() is None:
        if asked == "setup" and os.environ.get("CI") != "true":
            print(f"{NO_NODE}: all but the console and the TypeScript client is set up.", file=sys.stderr)
            return
        raise SystemExit(f"{NO_NODE}.")
    WORK[asked]()


if __name__ == "__main__":
    main()
