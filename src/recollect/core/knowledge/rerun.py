"""Estimate the cost of a rerun over the history, and collect its facts before it takes over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID, uuid5

from recollect.core.knowledge.facts import assume_start, identify, overlap
from recollect.core.text.names import normalize_name
from recollect.models.knowledge import Cost, Fact, FactEnd, ParsedExtraction, ValidTime

TYPICAL_COMPLETION = 400
"""Tokens of an answer about one segment, used if the ledger has no data."""


@dataclass(frozen=True, slots=True)
class RunCosts:
    """The cost of past prompts about segments: their number, and the tokens in addition to these prompts."""

    segments: int = 0
    prompt_tokens: int = 0
    """Of the further prompts, about names that may mean several entities."""
    completion_tokens: int = 0
    """Of all answers."""


def expect(past: RunCosts, prompts: Sequence[int]) -> Cost:
    """Estimate the cost of prompts with these token counts from past data, without the price."""
    if not past.segments:
        return Cost(len(prompts), sum(prompts), TYPICAL_COMPLETION * len(prompts))
    further = round(past.prompt_tokens * len(prompts) / past.segments)
    answers = round(past.completion_tokens * len(prompts) / past.segments)
    return Cost(len(prompts), sum(prompts) + further, answers)


def separate_spans(known: Iterable[Fact], spans: Mapping[UUID, ValidTime]) -> list[Fact]:
    """Restore the spans of facts; among equal facts, each ends when the next one begins.

    A fact without a start, or with the start of the next one, is omitted.
    """
    earliest = datetime.min.replace(tzinfo=UTC)
    restored = [replace(fact, span=spans[fact.id]) for fact in known]
    restored.sort(key=lambda fact: (fact.span.valid_at or earliest, fact.id), reverse=True)
    following: dict[tuple[FactEnd, str, FactEnd], ValidTime] = {}
    placed: list[Fact] = []
    for fact in restored:
        key = identify(fact.subject, fact.predicate, fact.object)
        later = following.get(key)
        span = fact.span
        if later is not None and overlap(span, later):
            if later.valid_at is None or later.valid_at <= (span.valid_at or earliest):
                continue
            span = replace(span, invalid_at=later.valid_at)
        following[key] = span
        placed.append(replace(fact, span=span))
    return placed


def name_statement(segment_id: UUID, position: int) -> UUID:
    """Return the stable ID of a statement of a segment's extraction."""
    return uuid5(segment_id, str(position))


@dataclass(frozen=True, slots=True)
class RerunFact:
    """A statement as a future fact, with names as its ends."""

    fact: Fact
    called: frozenset[str]
    """The normalized names of its subject."""
    replaced: tuple[UUID, ...] = ()
    """IDs of the statements that it ends."""

    @property
    def key(self) -> tuple[FactEnd, str, FactEnd]:
        """Return a key that equal facts share."""
        return identify(self.fact.subject, self.fact.predicate, self.fact.object)


def list_statements(
    segment_id: UUID, parsed: ParsedExtraction, shown: Sequence[Fact], said_at: datetime
) -> list[RerunFact]:
    """List the statements of an extraction with their IDs."""
    called = {
        normalize_name(mention.name): frozenset(map(normalize_name, (mention.name, *mention.aliases)))
        for mention in parsed.mentions
    }
    told = []
    for position, each in enumerate(parsed.statements):
        name, span = name_statement(segment_id, position), assume_start(each.span, said_at)
        fact = Fact(name, each.subject, each.predicate, each.object, each.text, span, said_at)
        subject = normalize_name(each.subject)
        replaced = tuple(shown[number - 1].id for number in each.replaces if number <= len(shown))
        told.append(RerunFact(fact, called.get(subject, frozenset({subject})), replaced))
    return told


class RerunFacts:
    """The facts that a run has extracted so far; later prompts may show them, and later segments may replace them."""

    def __init__(self) -> None:
        self._told: dict[UUID, RerunFact] = {}
        self._lasting: dict[tuple[FactEnd, str, FactEnd], RerunFact] = {}

    def add_statements(self, told: Iterable[RerunFact]) -> None:
        """Add the statements of a segment, and end the facts that they replace."""
        for each in told:
            for name in each.replaced:
                if name in self._told:
                    self._lasting.pop(self._told[name].key, None)
            self._told[each.fact.id] = each
            self._lasting.setdefault(each.key, each)

    def find_fact(self, name: UUID) -> Fact | None:
        """Find a statement by its ID."""
        told = self._told.get(name)
        return told.fact if told else None

    def about(self, called: Collection[str]) -> list[Fact]:
        """List the facts about a name that were not replaced, the newest first."""
        wanted = frozenset(called)
        return [told.fact for told in reversed(self._lasting.values()) if told.called & wanted]
