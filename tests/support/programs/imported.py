"""Run in the environment of a project: tell which modules come with none of some distributions, nor their needs."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution, distributions
from importlib.util import find_spec
from pathlib import Path


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def close(named: list[str]) -> set[str]:
    """Give distributions with all that they need, what only their extras need left out."""
    found: set[str] = set()
    waiting = [*map(normalise, named)]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        try:
            needed = distribution(name).requires or []
        except PackageNotFoundError:  # only wanted on other systems
            continue
        waiting += [normalise(re.match(r"[\w.-]+", each)[0]) for each in needed if "extra ==" not in each]
    return found


def owner_of(module: str) -> str:
    """Name the distribution that a module's file came with; ours are installed in place and list no files."""
    if module.startswith("recollect"):
        package = module.partition(".")[0]
        return "recollect-memory" if package == "recollect" else normalise(package)
    spec = find_spec(module)
    origin = Path(spec.origin if spec.origin else next(iter(spec.submodule_search_locations))).resolve()
    for each in distributions():
        if any(each.locate_file(file).resolve() in (origin, origin / "__init__.py") for file in each.files or ()):
            return normalise(each.name)
    return module


def main() -> None:
    asked = json.load(sys.stdin)
    installed = close(asked["named"])
    modules = [each for each in asked["modules"] if each.partition(".")[0] not in sys.stdlib_module_names]
    json.dump([each for each in modules if owner_of(each) not in installed], sys.stdout)


if __name__ == "__main__":
    main()
