"""A real S3 server over a folder: versitygw, built once by Go into the cache folder, started and ended by its pid."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.engines.servers import EngineServer

VERSION = "v1.8.0"
PACKAGE = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"
ADVICE = "the S3 server of the tests is built by Go: install Go 1.24 or later, and let it reach its module proxy"
BUCKET, USER, SECRET = "recollect", "recollect", "recollect-test"


def build() -> Path | None:
    """Build the server unless that was done; None where there is no Go."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recollect" / "engines"
    made = cache / f"versitygw-{VERSION}"
    if made.is_file():
        return made
    if shutil.which("go") is None:
        return None
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="versitygw-", dir=cache) as making:
        environment = {**os.environ, "GOBIN": making, "GOFLAGS": "-mod=mod"}
        subprocess.run(["go", "install", PACKAGE], check=True, env=environment, cwd=making)
        # Whoever is last replaces the same file.
        (Path(making) / "versitygw").rename(made)
    return made


@dataclass(slots=True)
class ObjectServer(EngineServer):
    """One S3 server, and the folder of its buckets."""

    @property
    def url(self) -> str:
        """Name the bucket."""
        return f"s3://{BUCKET}/cold"

    @property
    def options(self) -> str:
        """Give what a client must know, as the setting is written."""
        named = {"endpoint": f"http://127.0.0.1:{self.port}", "region": "us-east-1"}
        named |= {"access_key_id": USER, "secret_access_key": SECRET, "virtual_hosted_style_request": "false"}
        return " ".join(f"{name}={value}" for name, value in named.items())

    @property
    def place(self) -> Path:
        """Return the folder of what lies at the address: a bucket has other things, too."""
        return self.bucket / self.url.rpartition("/")[2]

    @property
    def bucket(self) -> Path:
        """Return the folder of the bucket."""
        return self.folder / "data" / BUCKET

    def start(self) -> None:
        """Start it, and wait until its port is open; a bucket is a folder."""
        self.bucket.mkdir(parents=True, exist_ok=True)
        command = [str(build()), "--port", f"127.0.0.1:{self.port}", "--access", USER, "--secret", SECRET]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "posix", str(self.folder / "data")], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.wait()


@contextmanager
def serving_objects(folder: Path) -> Iterator[ObjectServer]:
    """Run the server in a folder."""
    server = ObjectServer("objects", folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
