"""Let atheris try to break one parser: the program that a test starts, once for each of them.

Atheris rewrites modules while they are imported, to see which branches an input takes, and never returns. So every
parser has a process of its own: `python -m attacks.fuzz.program dates FOLDER -runs=2000 -seed=1`. What follows the
folder is for libFuzzer. A target is a module of this folder:

- `WATCHED` names the modules whose branches are followed,
- `list_seeds()` gives inputs to begin with,
- `check(data)` raises where the parser breaks a promise,
- `plant()` breaks the parser, for the control.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import atheris

PLANTED = "PLANTED_FAULT"
"""Set in the environment, it lets the target break its parser first."""


def load(name: str):
    """Import a target, and watch the branches of what it names."""
    module = f"attacks.fuzz.{name}"
    # What a target watches stands in its text: to import it for that would be too early.
    text = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    watched = next(line for line in text.splitlines() if line.startswith("WATCHED = "))
    with atheris.instrument_imports(include=watched.removeprefix("WATCHED = ").strip('"').split()):
        return importlib.import_module(module)


def main(name: str, folder: Path, options: list[str]) -> None:
    target = load(name)
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    for number, seed in enumerate(target.list_seeds()):
        (corpus / f"{number:04}").write_bytes(seed)
    if os.environ.get(PLANTED):
        target.plant()
    limits = ["-max_len=2048", "-len_control=0", "-rss_limit_mb=2048", "-timeout=120", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], str(corpus), f"-artifact_prefix={folder}/", *limits, *options], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
