"""Programs that tests start: the command, and the environment that they find."""

from __future__ import annotations

import os
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("recollect"))
# Our own variables would change what a program does; without bytecode every start would compile all of it again.
APART = ("RECOLLECT_", "PYTHONDONTWRITEBYTECODE")


def plain_environment() -> dict[str, str]:
    """Give the variables of this process, as somebody has them who has just installed Recollect."""
    return {name: value for name, value in os.environ.items() if not name.startswith(APART)}
