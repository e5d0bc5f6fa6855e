"""The steps of enrichment, by name and in order; a new step is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.errors import SetupError
from recollect.verbs.knowledge.steps.draft import Stage, Step
from recollect.verbs.knowledge.steps.link import link
from recollect.verbs.knowledge.steps.resolve import resolve
from recollect.verbs.knowledge.steps.segment import segment
from recollect.verbs.knowledge.steps.simple import extract, label, summarize

STEPS: Mapping[str, Step] = {
    step.name: step
    for step in (
        Step("label", Stage.CONVERSATION, label),
        Step("segment", Stage.CONVERSATION, segment),
        Step("summarise", Stage.SEGMENT, summarize),
        Step("extract", Stage.SEGMENT, extract),
        Step("resolve", Stage.SEGMENT, resolve),
        Step("link", Stage.SEGMENT, link),
    )
}


def choose_steps(names: str, steps: Mapping[str, Step] = STEPS) -> Mapping[str, Step]:
    """Keep the named steps, in their usual order; without names there are no steps."""
    wanted = names.replace(",", " ").split()
    if unknown := [name for name in wanted if name not in steps]:
        raise SetupError(f"RECOLLECT_ENRICH_STEPS names {unknown[0]!r}; the steps are {', '.join(steps)}.")
    return {name: step for name, step in steps.items() if name in wanted}
