"""How much a test does: little before a commit, enough in CI, the whole in a campaign.

`RECOLLECT_TESTS` chooses: `fast`, `ci` (unless told) or `long`. Hypothesis runs under a profile of the same name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from hypothesis import HealthCheck, settings

CHOSEN = os.environ.get("RECOLLECT_TESTS", "ci")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many of something a test tries, by profile."""

    unit: str
    ci: int
    long: int
    fast: int = 0

    @property
    def now(self) -> int:
        """The size of this run."""
        return {"fast": self.fast or self.ci, "ci": self.ci, "long": self.long}[CHOSEN]


EXAMPLES = Sizes("examples", fast=20, ci=100, long=2_000)
"""What hypothesis tries of each property that does not say otherwise."""


def load_profile() -> None:
    """Let hypothesis try as much as this run does; only a campaign draws new examples each time."""
    usual = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    settings.register_profile("fast", usual, max_examples=EXAMPLES.fast, derandomize=True, database=None)
    settings.register_profile("ci", usual, max_examples=EXAMPLES.ci, derandomize=True, database=None)
    settings.register_profile("long", usual, max_examples=EXAMPLES.long)
    settings.load_profile(CHOSEN)
