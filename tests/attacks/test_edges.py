"""Inputs at the edge of what a field can be: each is taken or refused with a reason, none breaks anything."""

from __future__ import annotations

import base64
import json
from collections import Counter

import pytest

PROMISED = {200, 201, 400, 404, 409, 413, 422, 431}
SCOPE = '"agent":"edge","user":"x"'
NUMBERS = (
    *("1e309", "-1e309", "NaN", "Infinity", "1e-400", "9" * 400, "18446744073709551616", "-9223372036854775809"),
    *("true", '"5"', "null", "-0.0"),
)
MOMENTS = (
    *("0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-23:59"),
    *("0001-01-01T00:00:00+23:59", "10000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "2026-02-30T00:00:00Z"),
    *("2016-12-31T23:59:60Z", "2026-01-01", "0", "1e20", "2026-01-01T00:00:00+24:00", "infinity", "now"),
    "2026-01-01T00:00:00.1234567890123Z",
)
TEXTS = (
    *("\0", "\ud800", "a\0b", "\u202eabc\u202c", "e\u0301" * 100, "👨\u200d👩\u200d👧" * 50, "\ufeff", "\uffff"),
    *("\U0010ffff", "\x7f\x80\x9f", "﷽" * 3_000, "ﬃ" * 1_000, "İ" * 100, "\u2028\u2029"),
)
ZONES = ("../../etc/passwd", "posixrules", "", "A" * 64, "America/New_York\0", "localtime", "\u202eUTC", "Factory")
CURSORS = (
    *("x", "AAAA", "eyJ9", "null", "-1", "9" * 50, "a" * 5_000, "'; drop table memories;--", "2026-01-01T00:00:00Z|x"),
    *(base64.urlsafe_b64encode(each).decode() for each in (b'{"id":1}', b"\0" * 40)),
)
LIMITS = ("0", "-1", "1e9", "9" * 21, "1000001", "1.5", "NaN")
LISTS = ("memories", "conversations", "facts", "entities", "faded", "recalls", "jobs", "topics")


def of_numbers():
    for number in NUMBERS:
        for field in ("importance", "activation"):
            yield "/v1/memories", f'{{{SCOPE},"content":"x","{field}":{number}}}'
        for field in ("limit", "min_trust", "recency", "decay"):
            yield "/v1/recall", f'{{{SCOPE},"text":"x","{field}":{number}}}'
        yield "/v1/memories", f'{{{SCOPE},"content":"x","metadata":{{"n":{number}}}}}'
        yield "/v1/memories", f'{{{SCOPE},"content":"x","embedding":[{",".join([number] * 64)}]}}'
        yield "/v1/recall", f'{{{SCOPE},"text":"x","weights":{{"text":{number}}}}}'
        put = f'{{"op":"put","path":["e"],"key":"k","value":{{"n":{number}}}}}'
        yield "/v1/items", f'{{{SCOPE},"operations":[{put},{{"op":"find","where":{{"n":{{"$gt":{number}}}}}}}]}}'


def of_moments():
    for moment in map(json.dumps, MOMENTS):
        for field in ("occurred_at", "expires_at"):
            yield "/v1/memories", f'{{{SCOPE},"content":"happened","{field}":{moment}}}'
        for field in ("as_of", "at", "since", "until", "now"):
            yield "/v1/recall", f'{{{SCOPE},"text":"last monday before christmas","{field}":{moment}}}'
        fact = f'{{"subject":"A","predicate":"p","object":"B","valid_at":{moment}}}'
        yield "/v1/facts", f'{{{SCOPE},"facts":[{fact}]}}'
        message = f'{{"role":"user","content":"hi","occurred_at":{moment}}}'
        yield "/v1/messages", f'{{{SCOPE},"conversation":"c","messages":[{message}]}}'
        yield "/v1/context", f'{{{SCOPE},"conversation":"c","text":"tomorrow","budget":500,"now":{moment}}}'


def of_texts():
    for text in map(json.dumps, TEXTS):
        yield "/v1/memories", f'{{{SCOPE},"content":{text}}}'
        for field in ("speaker", "topic"):
            yield "/v1/memories", f'{{{SCOPE},"content":"x","{field}":{text}}}'
        yield "/v1/memories", f'{{{SCOPE},"content":"x","keywords":[{text}],"metadata":{{"k":{text}}}}}'
        yield "/v1/recall", f'{{{SCOPE},"text":{text}}}'
        yield "/v1/facts", f'{{{SCOPE},"facts":[{{"subject":{text},"predicate":"p","object":"o"}}]}}'
        yield "/v1/items", f'{{{SCOPE},"operations":[{{"op":"put","path":["a"],"key":{text},"value":{{"v":{text}}}}}]}}'
        yield "/v1/associate", f'{{{SCOPE},"subject":{text},"predicate":"p","object":"o"}}'
    for zone in map(json.dumps, ZONES):
        yield "/v1/recall", f'{{{SCOPE},"text":"yesterday","zone":{zone}}}'


def of_shapes():
    deep, wide = '{"a":' * 10_000 + "1" + "}" * 10_000, "[" * 10_000 + "]" * 10_000
    yield "/v1/memories", f'{{{SCOPE},"content":"x","metadata":{deep}}}'
    yield "/v1/memories", f'{{{SCOPE},"content":"x","metadata":{{"a":{wide}}}}}'
    yield "/v1/items", f'{{{SCOPE},"operations":[{{"op":"find","where":{deep}}}]}}'
    yield "/v1/memories", f'{{{SCOPE},"content":"x","content":"y"}}'
    yield "/v1/memories", f'{{{SCOPE},"content":"x"}}'.encode("utf-16")
    yield "/v1/memories", b"\xef\xbb\xbf" + f'{{{SCOPE},"content":"x"}}'.encode()
    yield from (("/v1/memories", raw) for raw in (b"", b"null", b"[]", b'{"agent":"edge","content":"\xff\xfe"}'))
    asked = '"knowledge_id":"edge/x","query":"a","retrieval_setting":{"top_k":1,"score_threshold":0}'
    yield "/dify/retrieval", f'{{{asked},"metadata_condition":{deep}}}'
    for condition in (
        {"name": ["a"], "comparison_operator": "contains", "value": "%" * 1_000},
        {"name": ["a"] * 100, "comparison_operator": "=", "value": "x"},
        {"name": ["a"], "comparison_operator": "before", "value": "9" * 50},
        {"name": ["a"], "comparison_operator": "regex", "value": "(a+)+$"},
        {"name": ["a"], "comparison_operator": "in", "value": ["x"] * 5_000},
    ):
        given = json.dumps({"logical_operator": "and", "conditions": [condition]})
        yield "/dify/retrieval", f'{{{asked},"metadata_condition":{given}}}'


def of_lists():
    for name in LISTS:
        yield from ((f"/v1/{name}", {"agent": "edge", "user": "x", "cursor": cursor}) for cursor in CURSORS)
        yield from ((f"/v1/{name}", {"agent": "edge", "user": "x", "limit": limit}) for limit in LIMITS)
    yield "/v1/jobs/99999999999999999999", {}
    yield "/v1/jobs/-1", {}
    yield "/v1/conversations/..%2f..%2fkeys", {"agent": "edge", "user": "x"}


BODIES = {"numbers": of_numbers, "moments": of_moments, "texts": of_texts, "shapes": of_shapes}


@pytest.mark.promise("No input at the edge of what a field can be breaks a request", part="edges")
async def test_no_body_breaks_a_request(http, figure):
    codes = Counter()
    for make in BODIES.values():
        for path, body in make():
            sent = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
            answer = await http.post(path, content=sent, headers={"Content-Type": "application/json"})
            assert answer.status_code in PROMISED, (path, sent[:200], answer.text[:300])
            codes[answer.status_code] += 1
    figure(f"{codes.total()} requests: {dict(sorted(codes.items()))}")


@pytest.mark.promise("No forged cursor, limit or path breaks a list", part="edges")
async def test_no_parameter_breaks_a_list(http, figure):
    codes = Counter()
    for path, params in of_lists():
        answer = await http.get(path, params=params)
        assert answer.status_code in PROMISED, (path, params, answer.text[:300])
        codes[answer.status_code] += 1
    figure(f"{codes.total()} requests: {dict(sorted(codes.items()))}")
