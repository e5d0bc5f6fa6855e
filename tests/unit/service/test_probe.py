"""Which schema a program may run on, and why a connection fails: rules on values alone."""

from __future__ import annotations

import pytest

from recollect.errors import SchemaError, SetupError, UnavailableError
from recollect.store.database.connect_errors import find_refusal
from recollect.store.database.migrate import Migration, job_engine_migrations, list_migrations, number_of
from recollect.store.database.probe import AppliedMigration, check_schema

KNOWN = [Migration(name, "select 1") for name in ("0023_beside", "0024_bound_keys", "procrastinate/01_first")]
APPLIED = {step.name: AppliedMigration(step.checksum) for step in KNOWN}
DSN = "postgresql://clerk:secret@db.example:5433/memory"


@pytest.mark.parametrize(
    "applied",
    [
        APPLIED,
        APPLIED | {"0025_items": AppliedMigration("", 24)},
        APPLIED | {"0025_items": AppliedMigration("", 1), "0026_views": AppliedMigration("", 24)},
        APPLIED | {"procrastinate/99_later": AppliedMigration("")},
    ],
)
def test_a_schema_that_admits_the_program_is_ready(applied):
    check_schema(KNOWN, applied)


@pytest.mark.parametrize("lacking", list(APPLIED))
def test_a_schema_that_lacks_a_migration_is_to_be_migrated(lacking):
    applied = {name: each for name, each in APPLIED.items() if name != lacking} | {
        "0025_items": AppliedMigration("", 1)
    }
    with pytest.raises(SchemaError, match=rf"{lacking} on\. Run `recollect admin migrate`\."):
        check_schema(KNOWN, applied)


@pytest.mark.parametrize(
    "other",
    [
        {"0024_bound_keys": AppliedMigration("other")},
        {"0001_tenants": AppliedMigration("")},
        {"0024_others": AppliedMigration("", 1), "0026_views": AppliedMigration("")},
    ],
)
def test_a_database_that_other_files_have_made_is_to_be_left(other):
    with pytest.raises(SchemaError, match=r"created by an unreleased version\. Start with an empty one"):
        check_schema(KNOWN, APPLIED | other)
    without = {name: each for name, each in APPLIED.items() if name != "0024_bound_keys"}
    with pytest.raises(SchemaError, match="unreleased"):
        check_schema(KNOWN, without | other)


def test_a_step_of_the_job_engine_that_was_edited_is_not_ours_to_judge():
    check_schema(KNOWN, APPLIED | {"procrastinate/01_first": AppliedMigration("other")})


@pytest.mark.parametrize(
    "later",
    [
        {"0025_items": AppliedMigration("")},
        {"0025_items": AppliedMigration("", 24), "0026_views": AppliedMigration("", 25)},
        {"unnumbered": AppliedMigration("")},
    ],
)
def test_a_newer_schema_that_does_not_admit_the_program_says_to_update_it(later):
    with pytest.raises(SchemaError, match=r"Upgrade Recollect\.") as caught:
        check_schema(KNOWN, APPLIED | later)
    assert max(later) in str(caught.value)


def test_a_schema_that_does_not_fit_is_no_reason_to_try_again():
    assert issubclass(SchemaError, SetupError)
    assert not issubclass(SchemaError, UnavailableError)


def test_a_migration_names_the_oldest_program_in_its_header():
    text = "-- Add a column.\n-- admits programs from: 0024\nalter table memories add column mood text"
    assert Migration("0027_mood", text).oldest_program == 24
    assert Migration("0027_mood", "select 1 -- admits programs from: 0024").oldest_program is None


def test_no_migration_admits_programs_that_are_newer_than_itself():
    for step in list_migrations():
        assert (step.oldest_program or 0) <= number_of(step.name), step.name
    assert all(step.oldest_program is None for step in job_engine_migrations())


@pytest.mark.parametrize(
    ("text", "code", "lasting", "said"),
    [
        ('FATAL:  password authentication failed for user "clerk"', "password", True, "role clerk or its password"),
        ("fe_sendauth: no password supplied", "password", True, "role clerk or its password"),
        ('FATAL:  role "clerk" does not exist', "role", True, "has no role clerk"),
        ('FATAL:  database "memory" does not exist', "database", True, "has no database memory"),
        ("FATAL:  the database system is starting up", "starting", False, "still starting"),
        ("FATAL:  the database system is not yet accepting connections", "starting", False, "still starting"),
        ("port 5433 failed: Connection refused\n\tIs the server running on that host", "refused", False, "start it"),
        ("failed to resolve host 'db.example': [Errno -2]", "host", False, "cannot be resolved"),
        ("something else", "unknown", False, "does not answer at db.example:5433"),
    ],
)
def test_a_failed_connection_says_why_and_never_the_password(text, code, lasting, said):
    refusal, names = find_refusal(text, DSN)
    sentence = refusal.sentence.format(variable="RECOLLECT_DATABASE_URL", **names)
    assert (refusal.code, refusal.lasting) == (code, lasting)
    assert said in sentence
    assert "RECOLLECT_DATABASE_URL" in sentence or code == "starting"
    assert "secret" not in sentence
