"""Recall in one scope: by query, as text for a prompt, and saved recalls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.recall.quality import compare
from recollect.core.text.tokens import ESTIMATE, estimate
from recollect.mind.access import RIGHT_TO_RECALL, Access, right_for
from recollect.mind.operations import operation
from recollect.misspelt import read_filter, read_options
from recollect.models.blocks import MemoryBlock
from recollect.models.evaluations import Evaluation, EvaluationDifference, EvaluationQuestion, RelevanceCalibration
from recollect.models.filters import FILTER_FIELDS, NO_FILTER, FilterLike
from recollect.models.recall import Cue, Explanation, OptionsLike, RecallResult, Replay, SavedRecallPage
from recollect.models.service import Right
from recollect.verbs.conversations.block import BlockRequest, block
from recollect.verbs.recall import evaluate as evaluation
from recollect.verbs.recall.no_hits import recall_for
from recollect.verbs.recall.replay import explain_recall, replay
from recollect.verbs.recall.save import list_recalls
from recollect.verbs.recovery import recover


def build_cue(
    query: str,
    limit: int | None,
    filter: FilterLike | None,
    min_relevance: float | None,
    explain: bool,  # noqa: FBT001 - as the caller gave it
    options: OptionsLike | None,
) -> Cue:
    """Build a cue from the arguments of a recall."""
    only = read_filter(filter)
    narrowed = {} if only == NO_FILTER else {each.name: getattr(only, each.name) for each in FILTER_FIELDS}
    return Cue(query, limit, min_relevance, explain, **narrowed, **vars(read_options(options)))


class RecallVerbs:
    """How one caller recalls in one scope."""

    __slots__ = ()
    access: Access

    @operation("POST /v1/recall", RIGHT_TO_RECALL, command="recall", tool="recall")
    async def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        filter: FilterLike | None = None,
        min_relevance: float | None = None,
        explain: bool = False,
        options: OptionsLike | None = None,
    ) -> RecallResult:
        """Search memories, best match first.

        Args:
            query: What to look for, in any language. If it is empty, the newest memories are listed.
            limit: Maximum number of hits. Default: from the agent's profile, or 10.
            filter: What to search only, as a `Filter` or a dict: `{"kinds": ["fact"], "since": when}`.
            min_relevance: Minimum relevance of hits, 0 to 1. Default: all hits.
            explain: Whether the result includes its explanation, without being saved.
            options: How to search, as `RecallOptions` or a dict: `{"timezone": "Asia/Shanghai"}`.
        """
        asked = build_cue(query, limit, filter, min_relevance, explain, options)
        access = self.access
        access.require(right_for([asked]))
        return (await recall_for(access.parts, access.caller, access.scope, [asked], await access.locate()))[0]

    @operation("POST /v1/recall/many", RIGHT_TO_RECALL, answer="results")
    async def recall_many(
        self,
        queries: Sequence[str],
        *,
        limit: int | None = None,
        filter: FilterLike | None = None,
        min_relevance: float | None = None,
        explain: bool = False,
        options: OptionsLike | None = None,
        isolated: bool = False,
    ) -> list[RecallResult]:
        """Run several recalls in the same way. With `isolated`, all use one snapshot."""
        asked = [build_cue(query, limit, filter, min_relevance, explain, options) for query in queries]
        access = self.access
        access.require(right_for(asked))
        place = await access.locate()
        return await recall_for(access.parts, access.caller, access.scope, asked, place, isolated=isolated)

    @operation("POST /v1/context", RIGHT_TO_RECALL, command="recall")
    async def context(
        self,
        query: str,
        budget: int = 2_000,
        *,
        limit: int | None = None,
        filter: FilterLike | None = None,
        min_relevance: float | None = None,
        explain: bool = False,
        options: OptionsLike | None = None,
        conversation: str = "",
        repeat: bool = False,
        tokenizer: str = "",
    ) -> MemoryBlock:
        """Return the memories that match a query as one text within a token budget, each line with its short ID.

        The context of a conversation also has its newest messages: `mind.conversation(id).context`.

        Args:
            query: What to look for, in any language.
            budget: Maximum number of tokens of the text.
            limit: Maximum number of lines. Default: from the agent's profile, or as many as fit.
            filter: What to search only, as a `Filter` or a dict.
            min_relevance: Minimum relevance of a memory, 0 to 1. Default: memories that are unlikely to help are left
                out.
            explain: Whether the result includes the explanation of the recall.
            options: How to search, as `RecallOptions` or a dict.
            conversation: Your ID of the conversation, in which memories that were shown before are left out until they
                have faded.
            repeat: Whether such memories are shown again, in fewer and fewer words.
            tokenizer: Name of a tokenizer or a model. Default: the configured one.
        """
        cue = build_cue(query, limit, filter, min_relevance, explain, options)
        access = self.access
        access.require(right_for([cue]))
        return await block(
            access.parts, access.scope, BlockRequest(cue, budget, conversation, repeat, tokenizer), access.place
        )


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
    filter: FilterLike | None = None,
    min_relevance: float | None = None,
    options: OptionsLike | None = None,
    report: Callable[[int], None] = report_nothing,
) -> Evaluation:
    """Measure how well recall finds the memories that questions expect, in the process or on a server.

    Nothing is stored, and no hit counts as accessed. The questions are asked with the given filter and options. Tokens
    are counted as the mind's own tokenizer does; on a server they are estimated.
    """
    counter: tuple[str, Callable[[str], int]] = ESTIMATE, estimate
    if isinstance(mind, RecallVerbs) and mind.access.parts.tokenizers:
        tokenizer = mind.access.parts.tokenizers[0]
        counter = tokenizer.name, tokenizer.count
    like = build_cue("", None, filter, min_relevance, explain=False, options=options)
    return await evaluation.evaluate(mind, questions, like, counter, report)


async def fit_relevance(
    mind: RecallVerbs,
    questions: Sequence[EvaluationQuestion],
    *,
    filter: FilterLike | None = None,
    options: OptionsLike | None = None,
) -> list[RelevanceCalibration]:
    """Fit tables of relevance to every other question, and measure them on the rest; nothing is stored.

    Questions that expect nothing teach what no answer looks like. Only a mind in the process can do it.
    """
    access = mind.access
    access.require(Right.READ)
    place = await recover(access.parts.recoveries, access.scope.tenant_id, access.locate)
    like = build_cue("", None, filter, None, explain=False, options=options)
    return await evaluation.fit_relevance(access.parts, access.scope, place, questions, like)


def compare_evaluations(now: Evaluation, before: Evaluation) -> EvaluationDifference | None:
    """Pair the questions that two evaluations have in common; None if they have none."""
    return compare(now, before)
