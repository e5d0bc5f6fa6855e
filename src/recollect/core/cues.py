"""Read a cue once, so that every channel sees the same question."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.identity import first_id_after
from recollect.core.terms import analyse_cue, script_of
from recollect.models import Cue, Script, Times, Weighing


@dataclass(frozen=True, slots=True)
class Reading:
    """A cue taken apart: what channels look for and within which bounds."""

    terms: tuple[str, ...]
    script: Script
    vector: NDArray[np.float32] | None
    kinds: list[str] | None
    min_trust: int
    before: UUID | None
    weighing: Weighing
    without_vector: str = ""
    """Why there is no vector, where there is none."""
    times: Times = field(default_factory=Times)
    text: str = ""
    """As it was given, for the channel that looks for names in it."""


def read(cue: Cue, vector: NDArray[np.float32] | None, without_vector: str = "") -> Reading:
    """Take a cue apart; the vector is given where an embedder or the caller had one, else the reason."""
    return Reading(
        terms=tuple(analyse_cue(cue.text)),
        script=script_of(cue.text),
        vector=vector,
        kinds=[kind.value for kind in cue.kinds] or None,
        min_trust=cue.min_trust,
        before=first_id_after(cue.as_of) if cue.as_of else None,
        weighing=cue.weighing,
        without_vector=without_vector,
        times=cue.times,
        text=cue.text,
    )
