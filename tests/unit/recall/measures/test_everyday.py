"""The bench of everyday questions scores a cheat as computed by hand, and calls routes that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SCRIPT = ROOT / "bench" / "everyday.py"


def remembered(key, text, mark, day, **more):
    return {"key": key, "form": "event", "text": text, "mark": mark, "at": f"2026-{day}T08:00:00+00:00", **more}


def fact(key, thing, mark, day, words="lives in"):
    more = {"subject": "Ann", "predicate": words, "object": thing}
    return remembered(key, f"Ann {words} {thing}", mark, day, **more) | {"form": "fact"}


def asked(name, text="?", **more):
    return {"id": name, "text": text, **more}


PLAIN = {
    "memories": [
        remembered("p1", "Ann is a baker.", "baker", "01-05"),
        remembered("p2", "My cat is called Tom.", "Tom", "02-05") | {"form": "message", "reply": "Nice."},
        # The mark of the third is a longer word in the fourth.
        remembered("p3", "Ann drives a Mini.", "Mini", "03-05"),
        fact("p4", "a gemini poster", "gemini", "04-05", words="owns"),
    ],
    "questions": [asked("q1", gold="p1"), asked("q2", gold="p2"), asked("q3", gold="p3"), asked("q4", gold="p4")],
}
DATED = {
    "memories": [
        fact("home.0", "Rome until 2026-02-01", "Rome", "01-01"),
        fact("home.1", "Oslo", "Oslo", "02-01"),
        fact("pet.0", "a house with a dog", "dog", "03-01"),
        fact("pet.1", "a house with a newt since May", "newt", "05-01", words="now lives in"),
    ],
    "questions": [
        # Words of the fact itself excuse no version: not `until` in its object, and not `now` in its predicate.
        asked("d1", about="now", right="home.1", others=["home.0"]),
        asked("d2", about="past", right="pet.0", others=["pet.1"]),
        asked("d3", about="now", right="pet.1", others=[]),
    ],
}
UPDATES = {
    "memories": [remembered(f"u{n}", f"Ann likes colour {n}.", f"colour {n}", f"0{n}-10") for n in range(1, 5)],
    "questions": [asked("u1", older="u1", newer="u2"), asked("u2", older="u4", newer="u3")],
    "controls": [asked("c1", both=["u1", "u4"])],
}
STANDING = {
    "memories": [
        remembered("s1", "Call me Captain.", "Captain", "01-01", applies="always"),
        remembered("s2", "I eat no meat.", "no meat", "01-02", applies="topic"),
        remembered("s3", "I have a nut allergy.", "nut allergy", "01-03", applies="neither"),
    ],
    "questions": [asked("s1")],
    "topical": [asked("t1", gold="s2")],
}
PEOPLE = {
    "memories": [
        remembered("o1a", "Ann is an optician.", "optician", "01-01"),
        remembered("o1b", "My sister is a pilot.", "pilot", "01-02"),
    ],
    "questions": [asked("o1a", right="o1a", wrong="o1b"), asked("o1b", right="o1b", wrong="o1a")],
}
SET = {
    "half": "made-up",
    "language": "en",
    "user": "Ann",
    "now": "2026-11-20T09:00:00+00:00",
    "filler": {
        "seed": 1,
        "events": ["{u} bought {thing}."],
        "chats": [{"user": "I lost {thing}.", "reply": "Oh."}],
        "slots": {"thing": ["a red pen", "a blue pen", "a green pen", "a cup", "a hat", "a scarf"]},
    },
    "parts": {
        "noise": {"scope": "plain", "cues": [asked("n1"), asked("n2")]},
        "plain": PLAIN,
        "dated": DATED,
        "updates": UPDATES,
        "standing": STANDING,
        "people": PEOPLE,
    },
}


@pytest.fixture(scope="module")
def measure(tmp_path_factory):
    """Run the script on the made-up set, and read the figures and notes of one size."""
    folder = tmp_path_factory.mktemp("everyday")
    (folder / "set.json").write_text(json.dumps(SET))

    def run(cheat, size=0, *arguments):
        out = folder / "out.json"
        command = [sys.executable, SCRIPT, "--set", folder / "set.json", "--pretend", cheat, "--sizes", str(size)]
        done = subprocess.run([*command, "--out", out, *arguments], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(out.read_text())["sizes"][str(size)]

    return run


def test_everything_is_shown(measure):
    found = measure("everything")
    measures = found["measures"]
    assert list(measures) == ["dated", "people", "noise", "plain", "standing", "updates", "score"]
    # A quarter of the characters of each line, rounded down: 6 + 8 + 7 + 9.
    assert measures["noise"] == {"cues": 2, "shown": 1, "lines": 4, "tokens": 30, "relevance": None}
    plain = measures["plain"]
    # Newest first: ranks 4, 3, 2, 1.
    assert [note["rank"] for note in found["notes"]["plain"]] == [4, 3, 2, 1]
    assert (plain["first"], plain["five"], plain["prompt"], plain["empty"]) == (0.25, 1, 1, 0)
    assert (plain["prompt_event"], plain["prompt_message"], plain["prompt_fact"]) == (1, 1, 1)
    assert [note["as_current"] for note in found["notes"]["dated"]] == [["home.0"], ["pet.1"], []]
    assert (measures["dated"]["right"], measures["dated"]["clean"]) == (1, 0.333)
    assert (measures["dated"]["both_past"], measures["dated"]["both_now"]) == (0, 0.5)
    updates = measures["updates"]
    assert (updates["above"], updates["prompt"], updates["controls"]) == (0.5, 1, 1)
    standing = {"questions": 1, "always": 1, "topic_needless": 1, "other_lines": 1, "tokens": 10, "topic_needed": 1}
    assert measures["standing"] == standing
    people = measures["people"]
    assert (people["above"], people["pairs"], people["above_mine"], people["above_other"]) == (0.5, 0, 0, 1)
    scores = {"noise": 0, "plain": 1, "dated": 0.333, "updates": 0.6, "standing": 0, "people": 0}
    # 6 / (3 / .01 + 1 + 1 / .333 + 1 / .6)
    assert measures["score"] == {**scores, "whole": 0.02}


def test_nothing_is_shown(measure):
    measures = measure("empty")["measures"]
    assert measures["noise"] == {"cues": 2, "shown": 0, "lines": 0, "tokens": 0, "relevance": None}
    assert (measures["plain"]["prompt"], measures["plain"]["empty"], measures["dated"]["clean"]) == (0, 1, 1)
    assert measures["score"]["noise"] == 1 and sum(measures["score"].values()) == pytest.approx(1 + 0.012)


def test_filler_pushes_out_old_memories(measure):
    once, again = (measure("newest", 8, "--parts", "plain") for _ in range(2))
    assert once == again
    assert list(once["measures"]) == ["plain", "score"]
    whole = measure("everything", 8, "--parts", "noise")["notes"]["noise"]
    # Filler memories share an ID.
    assert {note["lines"] for note in whole} == {5}


def test_an_unknown_part_is_refused():
    command = [sys.executable, SCRIPT, "--set", "none.json", "--parts", "plain,pain"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2 and "unknown part 'pain'" in done.stderr


def test_the_routes_exist():
    paths = re.findall(r'"(/v1/[a-z/]+)"', SCRIPT.read_text(encoding="utf-8"))
    headings = re.findall(r"^### (?:GET|POST) (\S+)$", (ROOT / "docs/reference/http.md").read_text(), re.MULTILINE)
    assert len(paths) == 7 and set(paths) <= set(headings)
