"""The fields of the rows of an export, and their checks: the same limits as for writes."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from math import isfinite
from typing import Any, TypeAlias

from recollect.core.imports.sections import COUNTERS, PROFILE, VECTORS
from recollect.core.text.checks import EARLIEST, LATEST, check_json, is_unstorable
from recollect.core.text.names import CONTROL
from recollect.errors import InvalidInputError
from recollect.models.service import IDENTIFIER

MAX_LINE_LENGTH = 8 << 20
"""More than the largest message, item or saved recall needs, even if every character is escaped."""
MAX_CONTENT_LENGTH, MAX_NEW_LENGTH = 200_000, 32_000
"""Maximum characters of a message, and of any other memory."""
MAX_OBJECT_BYTES, MAX_OBJECT_DEPTH = 1 << 20, 70
MAX_METADATA_BYTES, MAX_METADATA_DEPTH = 64 << 10, 12
"""The limits of callers, and room for additions by the service."""
MAX_UNPACKED_BYTES = 32 << 20
MAX_LISTED_NAMES, MAX_UNKNOWN_FIELDS = 100_000, 100
KINDS = ("message", "event", "chat", "thought", "fact", "summary")
UUID_FORM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
LABEL = r"(?:[a-z0-9-]|_[0-9a-f]{4}|__0[0-9a-f]{5}|__10[0-9a-f]{4})+"
PATH_FORM = re.compile(rf"{LABEL}(?:\.{LABEL}){{0,15}}")
VECTOR_FORM = re.compile(r"\[[-+.0-9eE]+(?:,[-+.0-9eE]+)*\]")
NUMERIC = (int, float)
PART_FIELDS = {"type": 20, "text": MAX_CONTENT_LENGTH, "name": 200, "url": 8_000, "call_id": 200}
FILE_FIELDS = {"type": 200, "url": 8_000, "upload_id": 200, "side": 20, "name": 200}
WRONG = (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError, zlib.error, InvalidInputError)
PARTS = ("text", "image", "file", "tool_call", "tool_result")
Check: TypeAlias = Callable[[Any], bool]


def is_text(longest: int, value: Any) -> bool:  # noqa: ANN401 - any JSON, here and below
    """Return whether a value is a text that PostgreSQL can store."""
    return isinstance(value, str) and len(value) <= longest and not is_unstorable(value)


def is_line(longest: int, value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is a text of one line."""
    return is_text(longest, value) and (value.isprintable() or not CONTROL.search(value))


def is_id(value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is a UUID in the format of the database."""
    return isinstance(value, str) and UUID_FORM.fullmatch(value) is not None


def is_time(value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is a time with an offset, between the years 1 and 9999."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    return moment is not None and moment.tzinfo is not None and EARLIEST <= moment <= LATEST


def is_number(least: float, most: float, value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is a finite number within bounds."""
    return type(value) in NUMERIC and isfinite(value) and least <= value <= most


def is_count(most: int, value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is a non-negative integer within a maximum."""
    return type(value) is int and 0 <= value <= most


def is_one_of(known: tuple[str, ...], value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is one of the known words."""
    return isinstance(value, str) and value in known


def is_list(most: int, of: Check, value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is a list of bounded length whose elements all pass a check."""
    return isinstance(value, list) and len(value) <= most and all(map(of, value))


def is_object(largest: int, deepest: int, value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is a JSON object of bounded size and depth that can be stored."""
    return check_json("", value, largest, deepest) > 0


def is_record(fields: Mapping[str, int], types: tuple[str, ...], value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is an object of known text fields, with an allowed type."""
    if not isinstance(value, dict) or not value.get("type") or not value.keys() <= fields.keys():
        return False
    sides = value.get("side") in {None, "user", "assistant"} and (not types or value["type"] in types)
    return sides and all(is_text(fields[name], text) for name, text in value.items() if text is not None)


def is_object_of(of: Check, value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is an object whose values all pass a check."""
    return is_object(MAX_METADATA_BYTES, 2, value) and all(map(of, value.values()))


def is_vector(dimensions: int, value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is a vector; `dimensions` 0 allows any number of dimensions."""
    return (
        isinstance(value, str)
        and VECTOR_FORM.fullmatch(value) is not None
        and (value.count(",") + 1 == dimensions or (dimensions == 0 and value.count(",") < 4_096))
    )


def is_bytes(value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is bytes in the format of the database."""
    return isinstance(value, str) and value.startswith("\\x") and value == "\\x" + bytes.fromhex(value[2:]).hex()


def is_packed(value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is the packed ranking data of a saved recall, within the maximum size."""
    if not is_bytes(value):
        return False
    packed = zlib.decompressobj()
    packed.decompress(bytes.fromhex(value[4:]), MAX_UNPACKED_BYTES)
    return packed.eof


TYPES: Mapping[str, Check] = {
    "id": is_id,
    "conversation": lambda value: value == "" or (isinstance(value, str) and IDENTIFIER.fullmatch(value) is not None),
    "time": is_time,
    "flag": lambda value: isinstance(value, bool),
    "count": partial(is_count, (1 << 53)),
    "integer": lambda value: type(value) is int and abs(value) <= 1 << 31,
    "number": partial(is_number, -1e300, 1e300),
    "importance": partial(is_number, 1, 10),
    "line": partial(is_line, 200),
    "origin": partial(is_line, 300),
    "part": partial(is_line, 500),
    "text": partial(is_text, 32_000),
    "content": partial(is_text, MAX_CONTENT_LENGTH),
    "kind": partial(is_one_of, KINDS),
    "role": partial(is_one_of, ("user", "assistant", "system", "tool")),
    "status": partial(is_one_of, ("ok", "no_candidates", "nothing_relevant", "error")),
    "withheld": partial(is_one_of, ("archived", "deleted", "to_rederive", "past", "faded")),
    "grounds": partial(is_one_of, ("expired", "held", "protected", "decayed", "aged", "kept")),
    "metadata": partial(is_object, MAX_METADATA_BYTES, MAX_METADATA_DEPTH),
    "object": partial(is_object, 4 * MAX_OBJECT_BYTES, MAX_OBJECT_DEPTH),
    "counts": partial(is_object_of, partial(is_count, 1 << 53)),
    "numbers": partial(is_object_of, partial(is_number, -1e300, 1e300)),
    "texts": partial(is_object_of, partial(is_text, 32_000)),
    "keywords": partial(is_list, 256, partial(is_line, 500)),
    "ids": partial(is_list, MAX_LISTED_NAMES, is_id),
    "terms": partial(is_list, 1 << 18, partial(is_count, (1 << 36) - 1)),
    "objects": partial(is_list, MAX_LISTED_NAMES, partial(is_object, MAX_OBJECT_BYTES, MAX_OBJECT_DEPTH)),
    "parts": partial(is_list, 64, partial(is_record, PART_FIELDS, PARTS)),
    "files": partial(is_list, 64, partial(is_record, FILE_FIELDS, ())),
    "path": lambda value: is_text(2_100, value) and PATH_FORM.fullmatch(value) is not None,
    "vector": partial(is_vector, 0),
    "bytes": is_bytes,
    "packed": is_packed,
    "any": lambda value: value is not None,
}
"""The checks of field types; `any` is a text or a number that the database itself checks."""
MESSAGE = (
    "id:id conversation_id:conversation number:count parent_id:id? turn_id:id role:role status:any occurred_at:time "
    "tokens:counts images:count parts:parts? attachments:files? external_id:line stated_parent:id?"
)
FIELDS: Mapping[str, str] = {
    "memories/memories": "id:id kind:kind content:content speaker:line importance:importance importance_from:any "
    "subject:part predicate:part object:part idle:flag depth:count keywords:keywords origin:origin trust:trust "
    "occurred_at:time created_at:time embedding_text:text metadata:metadata withheld:withheld? expires_at:time? "
    "revived_at:time?",
    "memories/memory_features": "id:id occurred_at:time expires_at:time? number:count? importance:importance "
    "length:count tells:count pinned:flag kind:kind state:any speaker:part origin:origin "
    "conversation_id:conversation? role:role?",
    "memories/memory_terms": "id:id kind:kind trust:trust terms:terms weights:any draw:integer",
    "memories/memory_keywords": "keyword:part kind:kind id:id counted:flag",
    "memories/keyword_strengths": "kind:kind keyword:part strength:count",
    "memories/evidence": "memory_id:id source_id:id",
    "memories/accesses": "id:id kind:kind last_accessed_at:time access_count:count",
    "memories/withheld_memories": "id:id terms:terms weights:any draw:integer counted:flag term_count:count "
    "last_accessed_at:time? access_count:count? faded_at:time? fading_score:number? fading_grounds:grounds? "
    "fading_reason:text?",
    "topics/topics": "id:id path:path name:part created_at:time",
    "topics/topic_links": "topic_id:id memory_id:id activation:number diffusion:number independence:number "
    "occurred_at:time kind:kind trust:trust withheld_for:withheld?",
    "topics/related_topics": "topic_id:id memory_id:id related_id:id place:count",
    "conversations/conversations": "id:conversation name:text state:any synced:flag synced_number:count "
    "last_number:count summary_id:id? metadata:metadata created_at:time updated_at:time changed_at:time "
    "idle_since:time segmented_number:count",
    "conversations/messages": MESSAGE,
    "conversations/past_messages": MESSAGE,
    "conversations/forgotten_messages": "conversation_id:conversation external_hash:bytes id:id",
    "conversations/shown_memories": "conversation_id:conversation memory_id:id short_id:line score:number "
    "computed_at:time",
    "conversations/purge_receipts": "id:id conversation_id:conversation asked_by:origin removed:counts begun_at:time "
    "erased_at:time? finished_at:time? mirrors:texts",
    "knowledge/runs": "id:id model:part since:time? state:any begun_at:time switched_at:time? prompt_version:part",
    "knowledge/segments": "id:id conversation_id:conversation first_number:count last_number:count ending:any "
    "similarity:number? label:text state:any reason:text closed_at:time enriched_at:time? attempts:count",
    "knowledge/extractions": "segment_id:id run_id:id model:part prompt_version:part content:object made_at:time "
    "applied_at:time? summary_id:id?",
    "knowledge/entities": "id:id name:part normalised:part type:any created_at:time",
    "knowledge/mentions": "source_id:id entity_id:id normalised:part name:part description:text mentioned_at:time",
    "knowledge/entity_merges": "absorbed_id:id merged_at:time kept_id:id split_at:time?",
    "knowledge/beliefs": "id:id lineage:id version:count subject_id:id? predicate:part object_id:id? valid_at:time? "
    "invalid_at:time? created_at:time superseded_at:time? contested:flag revises:flag",
    "items/items": "path:text key:part value:object text:text embedding:vector? memory_id:id? revision:count "
    "created_at:time updated_at:time",
    "recall/recalls": "id:id asked_at:time text:text cue:object vector:bytes? space_id:integer? inputs:packed "
    "listed:ids hits:objects limit:count status:status message:text methods:texts tallies:object milliseconds:number",
    "agents/feedback": "recall_id:id memory_id:id useful:flag rank:count? similarity:number? importance:number? "
    "candidates:count? unweighed:numbers script:any marked_at:time",
    PROFILE: "profile:metadata metadata:metadata",
    COUNTERS: "unreflected_importance:number unreflected_memories:count last_written_at:time",
    VECTORS: "id:id embedding:vector with_context:flag",
}
"""The fields of each section with their types; a question mark means that null or absence is allowed."""


def list_fields(section: str) -> list[str]:
    """List the fields of a section."""
    return [each.partition(":")[0] for each in FIELDS[section].split()]


def require(valid: bool) -> None:  # noqa: FBT001 - the result of a check
    """Raise an error unless a value is valid."""
    if not valid:
        raise ValueError


class RowCheck:
    """Checks the rows of one section, and counts unknown fields, which an import omits."""

    def __init__(self, section: str, trust: int, dimensions: int = 0) -> None:
        given = {"trust": partial(is_count, trust), "vector": partial(is_vector, dimensions)}
        self.section, self.unknown = section, dict[str, int]()
        self._paths = {""}
        self._fields: dict[str, tuple[Check, str, bool]] = {}
        for written in FIELDS[VECTORS if section.startswith(VECTORS) else section].split():
            name, _, kind = written.partition(":")
            required = kind.rstrip("?")
            self._fields[name] = given.get(required) or TYPES[required], required, kind != required

    def check(self, line: bytes, number: int) -> dict[str, Any]:
        """Return the row of a line, or raise an error with the line and the field."""
        name, kind = "row", "JSON object"
        try:
            row: dict[str, Any] = json.loads(line, parse_constant=float.fromhex)
            for name, (check, kind, optional) in self._fields.items():  # noqa: B007 - named in the error
                value = row.get(name)
                if not (optional and value is None):
                    require(check(value))
            if self.section == "memories/memories":
                name, kind = "content", "text"
                require(row["kind"] == "message" or len(row["content"]) <= MAX_NEW_LENGTH)
        except WRONG:
            wrong = f"{self.section}, line {number}: {name} is missing or not a valid {kind}."
            raise InvalidInputError(f"{wrong} Nothing was imported.") from None
        if self.section == "topics/topics":
            self._paths.add(row["path"])
        if unknown := row.keys() - self._fields.keys():
            for each in unknown if len(self.unknown) < MAX_UNKNOWN_FIELDS else ():
                self.unknown[each[:100]] = self.unknown.get(each[:100], 0) + 1
        return row

    def check_end(self) -> None:
        """Refuse topics without their parent topic."""
        if not {path.rpartition(".")[0] for path in self._paths} <= self._paths:
            raise InvalidInputError(f"{self.section} lacks a topic above another. Nothing was imported.")
