"""What it costs to import the SDK and to show the help, beside the libraries that each stands on.

uv run python bench/loading.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys

ROUNDS = 15
PROGRAMS = {
    "httpx and pydantic": "import httpx, pydantic",
    "recollect.client": "from recollect.client import Client",
    "recollect.sync": "import recollect.sync",
    "typer and rich": "import typer, typer.rich_utils",
    "recollect --help": (
        "import io, sys; sys.argv, sys.stdout = ['recollect', '--help'], io.StringIO(); "
        "from recollect.doors.cli.main import main; main()"
    ),
}
SDK = "httpx and pydantic"
BASES = {"recollect.client": SDK, "recollect.sync": SDK, "recollect --help": "typer and rich"}
MEASURE = "import sys, time\ntry:\n    {}\nexcept SystemExit: pass\nsys.__stdout__.write(str(time.process_time()))"


def measure(program: str) -> float:
    """Run a program in a process of its own; return its seconds of CPU."""
    command = [sys.executable, "-c", MEASURE.format(program)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the median CPU of each, and its ratio to what it stands on; all of them take turns."""
    empty, taken = [], {name: list[float]() for name in PROGRAMS}
    for _ in range(ROUNDS):
        empty.append(measure("pass"))
        for name, program in PROGRAMS.items():
            taken[name].append(measure(program))
    start = statistics.median(empty)
    medians = {name: statistics.median(seconds) - start for name, seconds in taken.items()}
    for name, seconds in medians.items():
        ratio = f"{seconds / medians[BASES[name]]:.2f} x {BASES[name]}" if name in BASES else ""
        print(f"{name:20} {1000 * seconds:6.0f} ms of CPU  {ratio}")


if __name__ == "__main__":
    main()
