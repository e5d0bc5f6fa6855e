"""Find a Java that the engines run on, and put their jars and start classes into the user's cache folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path

SOURCES = Path(__file__).parent
OLDEST = 21
JVMS = Path("/usr/lib/jvm")
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
ADVICE = f"the engines need a JDK of {OLDEST} or later and Maven: install them, and set JAVA_HOME if they are not found"


def find_java() -> Path | None:
    """Find the home of a JDK that is new enough: the one that is named, that on the path, then any on the system."""
    named = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    found = shutil.which("java")
    on_path = [Path(found).resolve().parents[1]] if found else []
    on_system = sorted(JVMS.iterdir()) if JVMS.is_dir() else []
    return next((home for home in [*named, *on_path, *on_system] if is_new_enough(home)), None)


def is_new_enough(home: Path) -> bool:
    """Tell whether a folder holds a JDK with a compiler that can read the engines' classes."""
    release = home / "release"
    if not release.is_file() or not (home / "bin" / "javac").is_file():
        return False
    version = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(encoding="utf-8"), re.MULTILINE)
    return version is not None and int(version[1]) >= OLDEST


def can_run() -> bool:
    """Tell whether this machine has what the engines need."""
    return find_java() is not None and shutil.which("mvn") is not None


def build(engine: str) -> Path:
    """Fetch the jars of an engine and compile what starts it, unless that was done; return the folder."""
    sources = sorted(path for path in (SOURCES / engine).rglob("*") if path.suffix in {".java", ".xml"})
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recollect" / "engines"
    folder = cache / f"{engine}-{digest}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{engine}-", dir=cache) as making:
        made = Path(making) / "made"
        compile_engine(engine, made)
        try:
            made.rename(folder)
        except OSError:
            # Another run was faster.
            assert folder.is_dir()
    return folder


def compile_engine(engine: str, made: Path) -> None:
    """Resolve the jars, unpack the plugins' archives among them, and compile the start class against them."""
    home = find_java()
    assert home is not None, ADVICE
    jars, classes = made / "jars", made / "classes"
    environment = {**os.environ, "JAVA_HOME": str(home)}
    pom = str(SOURCES / engine / "pom.xml")
    resolve = ["mvn", "-q", "-B", "-f", pom, COPY, f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
    subprocess.run(resolve, check=True, env=environment)
    for archive in jars.glob("*.zip"):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(made / "plugins")
        archive.unlink()
    classes.mkdir()
    among = os.pathsep.join(f"{each}/*" for each in (jars, made / "plugins"))
    written = [str(path) for path in (SOURCES / engine).rglob("*.java")]
    subprocess.run([str(home / "bin" / "javac"), "-cp", among, "-d", str(classes), *written], check=True)
