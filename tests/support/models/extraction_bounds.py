"""What holds of every extraction that was read from an answer, whatever the model has said."""

from __future__ import annotations

from recollect.core.knowledge.extractions import (
    MAX_ALIASES,
    MAX_DESCRIPTION_LENGTH,
    MAX_KEYWORD_LENGTH,
    MAX_KEYWORDS,
    MAX_LABEL_LENGTH,
    MAX_LEVELS,
    MAX_MENTIONS,
    MAX_PATHS,
    MAX_PREDICATE_LENGTH,
    MAX_REPLACED,
    MAX_STATEMENT_LENGTH,
    MAX_STATEMENTS,
    MAX_SUMMARY_LENGTH,
)
from recollect.core.memories.checks import check_new_memory
from recollect.core.text.checks import EARLIEST, LATEST
from recollect.core.text.names import CONTROL, normalize_name
from recollect.models.knowledge import ParsedExtraction, Statement
from recollect.models.memories import Kind, NewMemory, Triple


def texts_of(kept: ParsedExtraction) -> list[str]:
    named = [text for each in kept.mentions for text in (each.name, each.description, *each.aliases)]
    stated = [text for each in kept.statements for text in (each.subject, each.predicate, each.object, each.text)]
    return [kept.summary, kept.label, *kept.keywords, *named, *stated, *(part for path in kept.paths for part in path)]


def check_bounds(kept: ParsedExtraction, shown: int) -> None:
    assert len(kept.summary) <= MAX_SUMMARY_LENGTH
    assert len(kept.label) <= MAX_LABEL_LENGTH
    assert len(kept.paths) <= MAX_PATHS
    assert all(1 <= len(path) <= MAX_LEVELS for path in kept.paths)
    assert len(kept.keywords) <= MAX_KEYWORDS
    assert all(0 < len(keyword) <= MAX_KEYWORD_LENGTH * 2 for keyword in kept.keywords)
    assert kept.importance is None or 1 <= kept.importance <= 10
    assert len(kept.mentions) <= MAX_MENTIONS
    assert len({(normalize_name(each.name), each.type) for each in kept.mentions}) == len(kept.mentions)
    assert all(len(each.description) <= MAX_DESCRIPTION_LENGTH for each in kept.mentions)
    assert all(len(each.aliases) <= MAX_ALIASES for each in kept.mentions)
    assert len(kept.statements) <= MAX_STATEMENTS
    assert not any(CONTROL.search(text) for text in texts_of(kept))
    assert all(count > 0 for count in kept.dropped.values())
    names = {each.name for each in kept.mentions}
    for stated in kept.statements:
        check_statement(stated, names, shown)


def check_statement(stated: Statement, names: set[str], shown: int) -> None:
    assert {stated.subject, stated.object} <= names
    assert normalize_name(stated.subject) != normalize_name(stated.object)
    assert 0 < len(stated.predicate) <= MAX_PREDICATE_LENGTH
    assert 0 < len(stated.text) <= MAX_STATEMENT_LENGTH
    assert len(stated.replaces) <= MAX_REPLACED
    assert all(1 <= number <= shown for number in stated.replaces)
    begins, ends = stated.span.valid_at, stated.span.invalid_at
    assert all(EARLIEST <= at <= LATEST for at in (begins, ends) if at is not None)
    assert begins is None or ends is None or begins < ends
    triple = Triple(stated.subject, stated.predicate, stated.object)
    check_new_memory(NewMemory(stated.text, Kind.FACT, triple=triple, occurred_at=begins))
