"""Estimate what it costs to read history again, and hold what a run has stated before it takes over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID, uuid5

from recollect.core.knowledge.facts import assume_start, identify, overlap
from recollect.core.text.names import normalise_name
from recollect.models.knowledge import Cost, Fact, FactEnd, ParsedExtraction, Span

TYPICAL_COMPLETION = 400
"""Tokens of an answer about one segment, where the ledger has no figures."""


@dataclass(frozen=True, slots=True)
class Past:
    """What questions about segments cost so far: how many segments, and the tokens in addition to their prompts."""

    segments: int = 0
    prompt_tokens: int = 0
    """Of the further questions, about names that may mean several entities."""
    completion_tokens: int = 0
    """Of all answers."""


def expect(past: Past, prompts: Sequence[int]) -> Cost:
    """Estimate what prompts of so many tokens will cost, by past figures; without the price."""
    if not past.segments:
        return Cost(len(prompts), sum(prompts), TYPICAL_COMPLETION * len(prompts))
    further = round(past.prompt_tokens * len(prompts) / past.segments)
    answers = round(past.completion_tokens * len(prompts) / past.segments)
    return Cost(len(prompts), sum(prompts) + further, answers)


def keep_apart(known: Iterable[Fact], spans: Mapping[UUID, Span]) -> list[Fact]:
    """Give facts their spans back; of those that say the same, each ends where the next one begins.

    One that begins with the next one, or as nobody knows when, is left as it is: what it says is said.
    """
    earliest = datetime.min.replace(tzinfo=UTC)
    restored = [replace(fact, span=spans[fact.id]) for fact in known]
    restored.sort(key=lambda fact: (fact.span.valid_at or earliest, fact.id), reverse=True)
    following: dict[tuple[FactEnd, str, FactEnd], Span] = {}
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
    """Return the id of a statement of a segment's extraction, always the same."""
    return uuid5(segment_id, str(position))


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A statement as the fact that it will be, its ends by their names."""

    fact: Fact
    called: frozenset[str]
    """What its subject is called, normalised."""
    replaced: tuple[UUID, ...] = ()
    """Ids of the statements that it ends."""

    @property
    def key(self) -> tuple[FactEnd, str, FactEnd]:
        """Return what two statements of the same fact have in common."""
        return identify(self.fact.subject, self.fact.predicate, self.fact.object)


def tell(segment_id: UUID, parsed: ParsedExtraction, shown: Sequence[Fact], said_at: datetime) -> list[StatedFact]:
    """List what an extraction states, each statement with its id."""
    called = {
        normalise_name(mention.name): frozenset(map(normalise_name, (mention.name, *mention.aliases)))
        for mention in parsed.mentions
    }
    told = []
    for position, each in enumerate(parsed.statements):
        name, span = name_statement(segment_id, position), assume_start(each.span, said_at)
        fact = Fact(name, each.subject, each.predicate, each.object, each.text, span, said_at)
        subject = normalise_name(each.subject)
        replaced = tuple(shown[number - 1].id for number in each.replaces if number <= len(shown))
        told.append(StatedFact(fact, called.get(subject, frozenset({subject})), replaced))
    return told


class StatedSoFar:
    """What a run's extractions have stated so far: later segments may be shown it, and may replace it."""

    def __init__(self) -> None:
        self._told: dict[UUID, StatedFact] = {}
        self._lasting: dict[tuple[FactEnd, str, FactEnd], StatedFact] = {}

    def add(self, told: Iterable[StatedFact]) -> None:
        """Add what a segment states, and end what it replaces."""
        for each in told:
            for name in each.replaced:
                if name in self._told:
                    self._lasting.pop(self._told[name].key, None)
            self._told[each.fact.id] = each
            self._lasting.setdefault(each.key, each)

    def find(self, name: UUID) -> Fact | None:
        """Find a statement by its id."""
        told = self._told.get(name)
        return told.fact if told else None

    def about(self, called: Collection[str]) -> list[Fact]:
        """List what was stated about a name and not replaced since, the newest first."""
        wanted = frozenset(called)
        return [told.fact for told in reversed(self._lasting.values()) if told.called & wanted]
