"""Check facts from a caller, convert them to memories, and detect repeated requests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from recollect.core.knowledge.facts import check_span
from recollect.core.memories.checks import MAX_PART_LENGTH, check_new_memories
from recollect.core.text.checks import MAX_NAME_LENGTH, check_line, check_moment
from recollect.core.text.names import normalise_predicate, normalize_name
from recollect.core.text.terms import script_of
from recollect.errors import InvalidInputError
from recollect.models.knowledge import FactEnd, NewFact, ValidTime
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.models.recall import Script

MAX_FACTS, MAX_REPLACED = 200, 64
UNKNOWN_END = "subject and object must be names, or ids of entities of the same scope"


def check_new_facts(new: Sequence[NewFact]) -> None:
    """Check the facts of one call."""
    if not 1 <= len(new) <= MAX_FACTS:
        raise InvalidInputError(f"facts must hold 1 to {MAX_FACTS} items")
    for fact in new:
        check_new_fact(fact)
    check_new_memories([to_memory(fact, {}) for fact in new])


def check_new_fact(fact: NewFact) -> None:
    """Check the parts of a fact that a memory does not have: ends, span and `replaces`."""
    for field, end in (("subject", fact.subject), ("object", fact.object)):
        if isinstance(end, str):
            check_name(field, end, MAX_NAME_LENGTH)
    check_name("predicate", fact.predicate, MAX_PART_LENGTH)
    if normalise_end(fact.subject) == normalise_end(fact.object):
        raise InvalidInputError("subject and object must not be the same")
    for field, moment in (("valid_at", fact.valid_at), ("invalid_at", fact.invalid_at)):
        if moment is not None:
            check_moment(field, moment)
    check_span(ValidTime(fact.valid_at, fact.invalid_at))
    if len(fact.replaces) > MAX_REPLACED:
        raise InvalidInputError(f"replaces must hold at most {MAX_REPLACED} items")


def check_name(field: str, name: str, longest: int) -> None:
    """Refuse a name that is blank, too long, or has several lines."""
    check_line(field, name, longest)
    normalised = normalise_predicate(name) if field == "predicate" else normalize_name(name)
    if not normalised:
        raise InvalidInputError(f"{field} must not be blank")


def normalise_end(end: FactEnd) -> FactEnd:
    """Normalize an end."""
    return normalize_name(end) if isinstance(end, str) else end


def to_memory(fact: NewFact, named: Mapping[UUID, str]) -> NewMemory:
    """Convert a fact to a memory; `named` has the names of entities given by ID."""
    subject, object_ = name_end(fact.subject, named), name_end(fact.object, named)
    return NewMemory(
        content=fact.text or join_parts(subject, fact.predicate, object_),
        kind=Kind.FACT,
        importance=fact.importance,
        triple=Triple(subject, fact.predicate, object_),
        occurred_at=fact.occurred_at,
        evidence=fact.evidence,
    )


def name_end(end: FactEnd, named: Mapping[UUID, str]) -> str:
    """Return the name of an end."""
    return end if isinstance(end, str) else named.get(end, str(end))


def join_parts(subject: str, predicate: str, object: str) -> str:  # noqa: A002 - its name
    """Join the three parts, with blanks if the script uses blanks."""
    joint = "" if script_of(predicate) is Script.CJK else " "
    return joint.join((subject, predicate, object))


def fingerprint_facts(new: Sequence[NewFact]) -> bytes:
    """Hash the facts of a request, to detect an idempotency key that is reused with another body."""
    digest = hashlib.sha256()
    for fact in new:
        fields = [
            [str(fact.subject), fact.predicate, str(fact.object), fact.text, fact.subject_type, fact.object_type],
            [_write(moment) for moment in (fact.valid_at, fact.invalid_at, fact.occurred_at)],
            [str(each) for each in fact.replaces],
            [str(each) for each in fact.evidence],
            fact.importance,
        ]
        digest.update(json.dumps(fields, separators=(",", ":")).encode() + b"\n")
    return digest.digest()


def _write(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat() if moment else None
