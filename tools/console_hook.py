"""Put the built console into wheels and sdists; an editable install is left to `make console`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGES = Path("src", "recollect", "doors", "http", "pages")


class ConsoleHook(BuildHookInterface):
    """Build the console before files are gathered."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, or take what the sdist carries; without Node say that the console is missing."""
        if version == "editable":
            return
        root = Path(self.root)
        if (root / "console" / "package.json").exists():
            self.build(root)
        if (root / PAGES / "index.html").exists():
            build_data["artifacts"].append(f"/{PAGES.as_posix()}/**")
        elif os.environ.get("CONSOLE_REQUIRED"):
            raise SystemExit("A release carries the console: build it where Node 20.19 or newer is installed.")
        else:
            self.app.display_warning("Built without the console: Node 20.19 or newer is not here.")

    def build(self, root: Path) -> None:
        """Build from the sources of the checkout; nothing that was built before is taken for it."""
        place = importlib.util.spec_from_file_location("recollect_console_build", root / "tools" / "console.py")
        assert place is not None and place.loader is not None
        console = importlib.util.module_from_spec(place)
        place.loader.exec_module(console)
        if console.find_node() is not None:
            # The output of npm is not the output of the build backend.
            subprocess.run([sys.executable, console.__file__, "build"], stdout=sys.stderr, check=True)
