"""Check what a caller states, word it as a memory, and recognise the same request when it is sent again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from recollect.core.knowledge.facts import check_span
from recollect.core.memories.checks import LONGEST_PART, check_new_memories
from recollect.core.memories.importance import read_importance
from recollect.core.text.checks import LONGEST_NAME, check_line, check_moment
from recollect.core.text.names import normalise_name, normalise_predicate
from recollect.core.text.terms import script_of
from recollect.errors import InvalidInputError
from recollect.models.knowledge import FactEnd, NewFact, Span
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.models.recall import Script

MOST_FACTS, MOST_REPLACED = 200, 64
UNKNOWN_END = "subject and object must be names, or ids of entities of the same scope"


def check_new_facts(new: Sequence[NewFact]) -> None:
    """Check everything one call states."""
    if not 1 <= len(new) <= MOST_FACTS:
        raise InvalidInputError(f"facts must hold 1 to {MOST_FACTS} items")
    for fact in new:
        check_new_fact(fact)
    check_new_memories([to_memory(fact, {}) for fact in new])


def check_new_fact(fact: NewFact) -> None:
    """Check what a memory does not have: two different ends, a span, what it replaces."""
    for field, end in (("subject", fact.subject), ("object", fact.object)):
        if isinstance(end, str):
            check_name(field, end, LONGEST_NAME)
    check_name("predicate", fact.predicate, LONGEST_PART)
    if normalise_end(fact.subject) == normalise_end(fact.object):
        raise InvalidInputError("subject and object must not be the same")
    for field, moment in (("valid_at", fact.valid_at), ("invalid_at", fact.invalid_at)):
        if moment is not None:
            check_moment(field, moment)
    check_span(Span(fact.valid_at, fact.invalid_at))
    if len(fact.replaces) > MOST_REPLACED:
        raise InvalidInputError(f"replaces must hold at most {MOST_REPLACED} items")


def check_name(field: str, name: str, longest: int) -> None:
    """Refuse an invalid name: blank, too long, or on several lines."""
    check_line(field, name, longest)
    normalised = normalise_predicate(name) if field == "predicate" else normalise_name(name)
    if not normalised:
        raise InvalidInputError(f"{field} must not be blank")


def normalise_end(end: FactEnd) -> FactEnd:
    """Normalise an end."""
    return normalise_name(end) if isinstance(end, str) else end


def to_memory(fact: NewFact, named: Mapping[UUID, str]) -> NewMemory:
    """Word a fact as a memory; `named` has the names of entities that are given by id."""
    subject, object_ = name_end(fact.subject, named), name_end(fact.object, named)
    return NewMemory(
        content=fact.text or tell(subject, fact.predicate, object_),
        kind=Kind.FACT,
        importance=fact.importance,
        triple=Triple(subject, fact.predicate, object_),
        occurred_at=fact.occurred_at,
        evidence=fact.evidence,
    )


def name_end(end: FactEnd, named: Mapping[UUID, str]) -> str:
    """Give the name of an end."""
    return end if isinstance(end, str) else named.get(end, str(end))


def tell(subject: str, predicate: str, object: str) -> str:  # noqa: A002 - its name
    """Join the three parts, with blanks between them where the script has blanks."""
    joint = "" if script_of(predicate) is Script.CJK else " "
    return joint.join((subject, predicate, object))


def fingerprint_facts(new: Sequence[NewFact]) -> bytes:
    """Hash what a caller stated, so that the same key with another body is noticed."""
    digest = hashlib.sha256()
    for fact in new:
        fields = [
            [str(fact.subject), fact.predicate, str(fact.object), fact.text, fact.subject_type, fact.object_type],
            [_write(moment) for moment in (fact.valid_at, fact.invalid_at, fact.occurred_at)],
            [str(each) for each in fact.replaces],
            [str(each) for each in fact.evidence],
            read_importance(fact.importance),
        ]
        digest.update(json.dumps(fields, separators=(",", ":")).encode() + b"\n")
    return digest.digest()


def _write(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat() if moment else None
