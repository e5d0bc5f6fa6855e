"""Released migrations never change, and the previous program still runs after a later migration.

A job fills added columns, and a column that is not needed any more is removed one release later. `released.sha256`
lists the released migrations, as `sha256sum *.sql` writes it; a release adds its own lines.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from recollect.store.database.migrate import OUTSIDE_TRANSACTION, list_migrations

RELEASED = dict(
    reversed(line.split())
    for line in Path(__file__).with_name("released.sha256").read_text(encoding="utf-8").splitlines()
)
"""The hash of each file that is released, by its name."""
FIRST_RELEASE = 20
"""The number of the last file of the first release: those after it are held to the rules."""
REMOVES = re.compile(r"^-- removes what programs before \d{4} used$", re.MULTILINE)
COMMENT = re.compile(r"--[^\n]*")
BODY = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)
RULES = {
    "sets no lock_timeout": re.compile(r"\A(?!.*\bset (local )?lock_timeout\b)", re.DOTALL),
    "builds an index on a table that is used without `concurrently`": re.compile(
        r"\bcreate (unique )?index (?!concurrently)"
    ),
    "removes or renames what the program before uses": re.compile(
        r"\b(drop (table|column|view|function)|rename (to|column))\b"
    ),
    "changes the type of a column": re.compile(r"\balter (column )?\w+ (set data )?type\b"),
    "demands a value that the program before does not write": re.compile(
        r"\badd (column )?(if not exists )?\w+ (?![^,;]*\bdefault\b)[^,;]*\bnot null\b|\bset not null\b"
    ),
    "writes rows instead of leaving them to a job": re.compile(r"(?m)^\s*(update|delete from)\b"),
}


def find_faults(text: str) -> list[str]:
    """List what of a migration would stop the program before it."""
    # What functions do when they are called is not done by the migration.
    made = re.findall(r"\bcreate (?:unlogged )?table (?:if not exists )?(\w+)", text)
    plain = BODY.sub("", COMMENT.sub("", text)).lower()
    for table in made:
        plain = re.sub(rf"create (unique )?index \w+ on {table}\b", "", plain)
    found = [fault for fault, sign in RULES.items() if sign.search(plain)]
    if REMOVES.search(text):
        found = [fault for fault in found if not fault.startswith("removes")]
    if "concurrently" in plain and not text.startswith(OUTSIDE_TRANSACTION):
        found.append("builds concurrently inside a transaction")
    return found


def test_released_migrations_stay_as_they_are():
    texts = {f"{step.name}.sql": step.text for step in list_migrations()}
    first = {name for name in texts if int(name[:4]) <= FIRST_RELEASE}
    assert first <= RELEASED.keys()
    changed = [name for name, digest in RELEASED.items() if sha256(texts[name].encode()).hexdigest() != digest]
    assert changed == [], "add a new migration instead"


def test_no_migration_stops_the_program_before_it():
    later = [step for step in list_migrations() if int(step.name[:4]) > FIRST_RELEASE]
    assert {step.name: find_faults(step.text) for step in later if find_faults(step.text)} == {}


HEAD = "set local lock_timeout = '2s';\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "alter table memories add column mood text;",
        HEAD + "alter table memories add column mood text not null default '';",
        HEAD + "create table moods (scope_id bigint primary key); create index moods_by_scope on moods (scope_id);",
        OUTSIDE_TRANSACTION + "\nset lock_timeout = '2s';\ncreate index concurrently by_mood on memories (mood);",
        HEAD + "-- removes what programs before 0030 used\nalter table memories drop column mood;",
        HEAD + "create function f() returns void language sql as $$\n  update memories set mood = ''\n$$;",
    ],
)
def test_what_keeps_the_program_before_running_passes(text):
    assert find_faults(text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("alter table memories add column mood text;", "lock_timeout"),
        (HEAD + "create index by_mood on memories (mood);", "concurrently"),
        (HEAD + "create index concurrently by_mood on memories (mood);", "inside a transaction"),
        (HEAD + "alter table memories drop column mood;", "removes"),
        (HEAD + "alter table memories rename column mood to temper;", "removes"),
        (HEAD + "drop function recall_text(text);", "removes"),
        (HEAD + "alter table memories alter column mood type integer;", "type of a column"),
        (HEAD + "alter table memories add column mood text not null;", "demands"),
        (HEAD + "alter table memories alter column mood set not null;", "demands"),
        (HEAD + "update memories set mood = '';", "writes rows"),
    ],
)
def test_what_would_stop_it_is_found(text, fault):
    assert [each for each in find_faults(text) if fault in each]
