"""What libraries say in the log of a service: one line, no content, and the same only once a minute."""

from __future__ import annotations

import io
import json
import logging

import pytest

from recollect.doors.logs import REPEAT_SECONDS, JsonFormatter, OncePerMinute

CANARY = "canary-what-somebody-said"


@pytest.fixture
def written():
    return io.StringIO()


@pytest.fixture
def handle(written):
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(OncePerMinute())
    return handler.handle


def record(name="procrastinate.worker", *, line=7, at=0.0, error=None, args=()):
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord(name, logging.WARNING, "/library/worker.py", line, f"{CANARY} %s", args, info)
    made.created = 1_000_000 + at
    return made


def test_an_error_of_a_library_is_one_line_without_its_text(handle, written):
    handle(record(error=ConnectionError(CANARY)))
    assert json.loads(written.getvalue()) == {
        "time": "1970-01-12T13:46:40.000Z",
        "event": "library_log",
        "logger": "procrastinate.worker",
        "level": "warning",
        "place": "worker:7",
        "error": "ConnectionError",
    }


def test_an_error_that_is_only_quoted_is_named_too(handle, written):
    handle(record("psycopg.pool", args=(ConnectionError(CANARY),)))
    assert json.loads(written.getvalue())["error"] == "ConnectionError"
    assert CANARY not in written.getvalue()


def test_the_same_is_said_once_a_minute(handle, written):
    for at in (0, 1, REPEAT_SECONDS - 1, REPEAT_SECONDS, REPEAT_SECONDS + 1):
        handle(record(at=at))
    assert len(written.getvalue().splitlines()) == 2
    handle(record(line=8, at=2))
    handle(record(error=ConnectionError(CANARY), at=2))
    assert len(written.getvalue().splitlines()) == 4, "another place or error is another thing"


def test_our_own_events_are_all_written_as_they_are(handle, written):
    for _ in range(3):
        made = record("recollect.worker")
        made.msg, made.args = '{"event": "worker_restarts"}', ()
        handle(made)
    head = '{"time": "1970-01-12T13:46:40.000Z", "level": "warning", '
    assert written.getvalue() == f'{head}"event": "worker_restarts"}}\n' * 3
