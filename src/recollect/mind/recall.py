"""Recall in one scope: by query, as text for a prompt, and saved recalls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from recollect.core.recall.quality import compare
from recollect.core.text.tokens import ESTIMATE, estimate
from recollect.mind.access import RIGHT_TO_RECALL, Access, right_for
from recollect.mind.operations import operation
from recollect.models.blocks import MemoryBlock
from recollect.models.evaluations import Evaluation, EvaluationDifference, EvaluationQuestion, RelevanceCalibration
from recollect.models.recall import Cue, Explanation, RecallResult, Replay, SavedRecallPage
from recollect.models.service import Right
from recollect.verbs.conversations.block import BlockRequest, block
from recollect.verbs.recall import evaluate as evaluation
from recollect.verbs.recall.no_hits import recall_for
from recollect.verbs.recall.replay import explain_recall, replay
from recollect.verbs.recall.save import list_recalls
from recollect.verbs.recovery import recover


class RecallVerbs:
    """How one caller recalls in one scope."""

    __slots__ = ()
    access: Access

    @operation("POST /v1/recall", RIGHT_TO_RECALL, command="recall", tool="recall")
    async def recall(self, cue: str | Cue, *, limit: int | None = None) -> RecallResult:
        """Search memories, best match first."""
        asked = Cue(cue) if isinstance(cue, str) else cue
        asked = asked if limit is None else replace(asked, limit=limit)
        access = self.access
        access.require(right_for([asked]))
        return (await recall_for(access.parts, access.caller, access.scope, [asked], await access.locate()))[0]

    @operation("POST /v1/recall-each", RIGHT_TO_RECALL, answer="recollections")
    async def recall_each(self, cues: Sequence[str | Cue], *, isolated: bool = False) -> list[RecallResult]:
        """Run several recalls. With `isolated`, all use one snapshot."""
        asked = [Cue(cue) if isinstance(cue, str) else cue for cue in cues]
        access = self.access
        access.require(right_for(asked))
        place = await access.locate()
        return await recall_for(access.parts, access.caller, access.scope, asked, place, isolated=isolated)


@dataclass(frozen=True, slots=True)
class BlockView:
    """One caller's view of the texts that one scope has for prompts."""

    access: Access

    @operation("POST /v1/blocks", RIGHT_TO_RECALL, command="recall")
    async def show(
        self,
        cue: str | Cue,
        budget: int = 2_000,
        *,
        conversation: str = "",
        repeat: bool = False,
        tokenizer: str = "",
    ) -> MemoryBlock:
        """Return the memories that match a query as one text within a token budget, each line with its short ID.

        In a conversation, memories that were shown before are left out until they have faded; with `repeat` they are
        shown again, in fewer and fewer words.
        """
        asked = BlockRequest(Cue(cue) if isinstance(cue, str) else cue, budget, conversation, repeat, tokenizer)
        access = self.access
        access.require(right_for([asked.cue]))
        return await block(access.parts, access.scope, asked, access.place)


@dataclass(frozen=True, slots=True)
class RecallsView:
    """One caller's view of the kept recalls of one scope."""

    access: Access

    @operation("GET /v1/recalls", Right.READ, command="mind recalls")
    async def list(self, cursor: UUID | None = None, limit: int = 50) -> SavedRecallPage:
        """List saved recalls, newest first."""
        return await list_recalls(self.access.parts, self.access.scope, cursor, limit)

    @operation("GET /v1/recalls/{recall_id}", Right.READ, command="mind recalls")
    async def explain(self, recall_id: UUID) -> Explanation:
        """Explain the ranking of a saved recall."""
        return await explain_recall(self.access.parts, self.access.scope, recall_id)

    @operation("POST /v1/recalls/{recall_id}/replay", Right.READ, command="mind recalls")
    async def replay(
        self, recall_id: UUID, weights: Mapping[str, float] | None = None, *, as_of: datetime | None = None
    ) -> Replay:
        """Rank a saved recall with other weights, or run it again as of an earlier time."""
        return await replay(self.access.parts, self.access.scope, recall_id, weights, as_of)


def report_nothing(done: int) -> None:
    """Report nothing."""


async def evaluate(
    mind: evaluation.Recalling,
    questions: Sequence[EvaluationQuestion],
    *,
    like: Cue | None = None,
    report: Callable[[int], None] = report_nothing,
) -> Evaluation:
    """Measure how well recall finds the memories that questions expect, in the process or on a server.

    Nothing is stored, and no hit counts as accessed. `like` is a cue whose settings (weights, channels, a filter) the
    questions are asked with. Tokens are counted as the mind's own tokenizer does; on a server they are estimated.
    """
    counter: tuple[str, Callable[[str], int]] = ESTIMATE, estimate
    if isinstance(mind, RecallVerbs) and mind.access.parts.tokenizers:
        tokenizer = mind.access.parts.tokenizers[0]
        counter = tokenizer.name, tokenizer.count
    return await evaluation.evaluate(mind, questions, like or Cue(), counter, report)


async def fit_relevance(
    mind: RecallVerbs, questions: Sequence[EvaluationQuestion], *, like: Cue | None = None
) -> list[RelevanceCalibration]:
    """Fit tables of relevance to every other question, and measure them on the rest; nothing is stored.

    Questions that expect nothing teach what no answer looks like. Only a mind in the process can do it.
    """
    access = mind.access
    access.require(Right.READ)
    place = await recover(access.parts.recoveries, access.scope.tenant_id, access.locate)
    return await evaluation.fit_relevance(access.parts, access.scope, place, questions, like or Cue())


def compare_evaluations(now: Evaluation, before: Evaluation) -> EvaluationDifference | None:
    """Pair the questions that two evaluations have in common; None if they have none."""
    return compare(now, before)
