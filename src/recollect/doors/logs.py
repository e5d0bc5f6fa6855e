"""Log of the long-lived processes: every event is one line of JSON with time, level, codes and ids, never content."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime

OURS = "recollect"
REPEAT_SECONDS = 60.0
FRAMES = 8


def log_to_stderr(level: str = "info") -> None:
    """Log our own events from a level on, and warnings of libraries as events of ours."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    handler.addFilter(OncePerMinute())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger(OURS).setLevel(level.upper())


def report(log: logging.Logger, event: str, problem: BaseException, **ids: str) -> None:
    """Log an unexpected error by class and place, never by its text."""
    frames = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(problem.__traceback__)[-FRAMES:]]
    log.error(json.dumps({"event": event, **ids, "error": type(problem).__name__, "frames": frames}))


def is_ours(record: logging.LogRecord) -> bool:
    """Return whether an event is our own."""
    return record.name.split(".")[0] == OURS


class JsonFormatter(logging.Formatter):
    """One line for each record; of a library's only its origin, because its text may quote content."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        head = f'{{"time": "{format_timestamp(record.created)}", "level": "{record.levelname.lower()}", '
        if is_ours(record):
            return head + record.getMessage().removeprefix("{")
        line = {"event": "library_log", "logger": record.name}
        line["place"] = f"{record.module}:{record.lineno}"
        if error := error_of(record):
            line["error"] = error
        return head + json.dumps(line).removeprefix("{")


def format_timestamp(seconds: float) -> str:
    """Write a time in UTC, to the millisecond."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{int(seconds * 1000) % 1000:03}Z"


class OncePerMinute(logging.Filter):
    """Limit a library to one event of a kind per minute: one that reconnects logs it many times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a record."""
        if is_ours(record):
            return True
        key = (record.pathname, record.lineno, error_of(record))
        if record.created < self._said.get(key, 0.0) + REPEAT_SECONDS:
            return False
        self._said[key] = record.created
        return True


def error_of(record: logging.LogRecord) -> str:
    """Name the error that a record is about by its class."""
    told = [record.exc_info[1]] if record.exc_info else [*record.args] if isinstance(record.args, tuple) else []
    return next((type(each).__name__ for each in told if isinstance(each, BaseException)), "")
