"""The benches run, in a short form, so that they cannot rot; what they say at full length is in the docs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from recollect.llm.build import has_minilm
from support.programs.folders import find_memory
from support.programs.node import need_chromium, need_node
from support.programs.ports import free_port

ROOT = Path(__file__).parents[2]


def run(script, *arguments):
    command = [sys.executable, str(ROOT / "bench" / script), *arguments]
    # Their servers need not outlive them, and no channel may be given up because the machine is busy.
    environment = os.environ | {
        "TMPDIR": str(find_memory() or tempfile.gettempdir()),
        "RECOLLECT_RECALL__CHANNEL_TIMEOUT_SECONDS": "60",
    }
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def measure(name, *arguments):
    """Run a script in its short form, and leave the figures of a long run as they were."""
    out = ROOT / "bench" / "out" / f"{name}.json"
    before = out.read_text() if out.exists() else None
    try:
        run(f"{name}.py", *arguments)
        return json.loads(out.read_text())
    finally:
        if before is not None:
            out.write_text(before)


def test_every_script_can_be_imported():
    """Also those without a short form: what they call is there."""
    names = sorted(script.stem for script in (ROOT / "bench").glob("*.py"))
    command = [sys.executable, "-c", f"import {', '.join(names)}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT / "bench")
    assert done.returncode == 0, done.stderr


def test_speed():
    figures = measure("speed", "--rows", "600", "--scopes", "200", "--rounds", "2", "--chunks", "5")
    assert set(figures) == {"vector 200", "http 200", "load"}
    assert all(value > 0 for name, row in figures.items() for key, value in row.items() if key != "added_ms")


def test_yardstick():
    figures = measure("yardstick", "--scopes", "200", "--rounds", "2")
    assert {"200 bare", "200 now", "200 now vector", "bare insert", "now remember", "now turn"} <= set(figures)
    assert all(row["cpu"] > 0 for name, row in figures.items() if not name.endswith("same"))


def test_peers():
    figures = measure("peers", "--peers", "bare", "--scope", "200", "--rounds", "2")
    assert set(figures) == {"bare", "Recollect", "Recollect, vector alone"}
    assert all(row["cpu"] > 0 for row in figures.values())


def test_growth():
    figures = measure("growth", "--memories", "1000", "2000", "--calls", "3")
    assert {"1,000 bytes", "1,000", "1,000 bytes, built anew", "2,000 bytes", "2,000"} == set(figures)
    assert all(figures["2,000"][f"{call} buffers"] > 0 for call in ("recall", "remember", "turn"))
    # A memory is logged with its words and its vector; a turn has two of them.
    assert 2_000 < figures["1,000"]["remember wal all"] < figures["1,000"]["turn wal all"] < 100_000


def test_scale_repeats_and_loses_nothing():
    short = ("--scopes", "200000", "--tenants", "200", "--servers", "16", "--months", "3")
    first, second = (measure("scale", *short) for _ in range(2))
    assert first == second
    policies = first["policies"]
    *_, least_full = policies.values()
    for months in policies.values():
        stored = [month["full"] * month["servers"] for month in months]
        assert stored == pytest.approx([16 * 0.64 * 1.1**number for number in range(4)])
    # The largest tenant is larger than a server: only where it is split does nothing overflow.
    assert first["seen"]["largest tenant, of all bytes"] * 16 * 0.64 > 1
    assert all(month["over"] for month in policies["least full, whole tenants"])
    assert [month["over"] for month in least_full] == [0, 0, 0, 0]
    assert max(least_full[0][load] for load in ("bytes", "traffic")) < 1.05
    assert least_full[-1]["moved"] > 0


def test_cold():
    figures = measure("cold", "--scopes", "20", "--recalls", "5")
    assert figures["scopes"] == {"out and back": 20, "memories": 400, "exports that differ": 0}
    sizes = figures["bytes a memory"]
    assert 0 < sizes["cold"] < sizes["hot"]
    assert all(value > 0 for row in ("ms a scope", "ms of the first recall") for value in figures[row].values())


def test_filters():
    figures = measure("filters", "--scopes", "300", "--rounds", "2")
    assert {"300 none", "300 since", "300 where", "300 topics_only"} <= set(figures)
    assert all(row["cpu"] > 0 for row in figures.values())


def test_load():
    short = ("--scopes", "4", "--memories", "50", "--seconds", "1", "--rounds", "1", "--clients", "1", "8")
    figures = measure("load", *short)
    assert {"now given 1", "now given 8"} <= set(figures)
    assert all(row["per_s"] > 0 and row["server_ms"] > 0 for row in figures.values())


def test_writers():
    figures = measure("writers", "--turns", "3", "--rounds", "1")
    assert set(figures) == {"now: 1 writers, 1 scopes", "now: 8 writers, 1 scopes", "now: 8 writers, 8 scopes"}
    assert all(value > 0 for row in figures.values() for value in row.values())


def test_terms_index():
    figures = measure("terms_index", "--memories", "2000", "--writes", "40", "--rounds", "1")
    assert len(figures) == 6
    assert all(row["cpu_ms"] > 0 for row in figures.values())


def test_recall():
    figures = measure("recall", "--memories", "200", "--rounds", "2")
    channels = {"vector", "text", "stream", "keyword", "graph", "topic", "date", "recent"}
    assert set(figures) == {*channels, "all", "http all", "http usual"}
    assert (figures["all"]["channels"], all(row["ms"] > 0 for row in figures.values())) == (8, True)
    assert figures["all"]["ratio"] > 0


def test_context():
    figures = measure("context", "--memories", "200", "--messages", "60", "--rounds", "2")
    assert set(figures) == {"recall", "recall of 200", "history", "context"}
    assert all(value > 0 for row in figures.values() for value in row.values())


def test_stream():
    figures = measure("stream", "--sizes", "300", "--large", "1500", "--rounds", "3", "--cues", "5")
    assert set(figures) == {"exact 300", "large 1500"}
    assert all(value > 0 for row in figures.values() for key, value in row.items() if key != "access_ms")
    assert figures["exact 300"]["coarse"] < 30
    assert figures["large 1500"]["overlap"] >= 29


def test_conversations():
    figures = measure("conversations", "--sizes", "400", "2000", "--rounds", "5")
    assert {"newest 400", "leaf 2000", "naive 2000", "append 400", "ratio", "round_trips"} <= set(figures)
    for size in (400, 2_000):
        rows = figures[f"rows {size}"]
        assert 2 * rows["returned"] <= rows["read"] <= 2 * rows["returned"] + 8
        assert (figures[f"newest {size}"]["messages"], figures[f"newest {size}"]["tokens"] <= 4_000) == (102, True)
    assert max(figures["round_trips"].values()) <= 3
    assert figures["naive 2000"]["found"] < 1


def test_imports():
    figures = measure("imports", "--conversations", "6", "--messages", "10")
    assert [figures[way]["written"] for way in ("import", "again", "append conversations")] == [60, 0, 60]
    assert all(row["ms"] > 0 for way, row in figures.items() if way != "file")


def test_by_hand():
    figures = measure("by_hand", "--answers", "10", "--sizes", "60", "--rounds", "2")
    assert {row["our reader"] for row in figures["answers"].values()} == {10}
    assert set(figures["loads"]) == {"60", "60 with vectors"}
    assert all(value > 0 for row in figures["loads"].values() for value in row.values())


def test_items():
    figures = measure("items", "--items", "500", "--rounds", "5")
    assert figures["found"]["items"] >= 1
    assert {"get", "put", "find under a path", "find over all", "find over all, by a field"} <= set(figures)
    assert all(row["ratio"] > 0 for name, row in figures.items() if name != "found")


def test_lifecycle():
    figures = measure("lifecycle", "--messages", "1200")
    assert {"archive", "restore", "delete", "restore after delete", "purge"} <= set(figures)
    assert (figures["removed"]["messages"], figures["removed"]["vectors"]) == (1_200, 1_212)
    assert all(figures[name]["steps"] == 3 for name in ("archive", "restore", "purge"))


def test_graph():
    figures = measure("graph", "--facts", "2000", "--rounds", "5")
    assert set(figures) == {"walk 1", "walk 2", "walk 3", "recall", "export"}
    assert [figures[f"walk {hops}"]["facts"] for hops in (1, 2, 3)] == [100, 200, 300]
    assert all(figures[f"walk {hops}"]["ratio"] > 0 for hops in (1, 2, 3))
    assert figures["export"]["largest_piece"] < 400_000


def test_dates(shared):
    figures = measure("dates", "--rounds", "1")
    for name in ("en", "zh", "traps"):
        assert figures[name]["right"] / figures[name]["of"] >= 0.95, name
        assert figures[name]["median_us"] > 0
    assert figures["lifebench"]["named"] > 1_400 and figures["lifebench"]["within"] > 0.9
    assert figures["locomo"]["turns"] < 0.15 and figures["locomo"]["within"] > 0.6


def test_enrichment(shared):
    figures = measure("enrichment", "--messages", "40", "--text-only")
    for row in figures["calls"].values():
        assert (row["messages"], row["extractions"]) == (40, row["segments"])
        assert row["resolutions"] <= max(1, 0.2 * row["segments"])
        assert row["extractions"] + row["resolutions"] < row["mem0_turns"] < row["graphiti_least"]
        assert row["tokens"] > 0 and row["facts"] > 0
    assert set(figures["calls"]) == {"zereker_memory", "LoCoMo conv-26"}


@pytest.mark.real_model
@pytest.mark.skipif(not has_minilm(), reason="the local model is not installed")
def test_segments(shared):
    """Of as many cuts as topics end, at least twice as many are right as by chance."""
    usual = next(iter(measure("segments", "--talks", "6")["tried"].values()))
    assert len(usual) == 8
    for name, row in usual.items():
        assert row["ends"] == 30 and (row["right"] >= 2 * row["chance"] or "zh" in name), name


@pytest.mark.real_model
@pytest.mark.skipif(not has_minilm(), reason="the local model is not installed")
def test_the_picture_of_the_factors_shows_what_is_recalled_today(shared, tmp_path):
    drawn = tmp_path / "factors.svg"
    run("factors.py", "--out", str(drawn))
    texts = texts_of(drawn)
    assert len([text for text in texts if "event" in text or "thought" in text]) == 30
    assert texts == texts_of(ROOT / "docs" / "explanation" / "three-factors.svg")


def texts_of(picture):
    return re.findall(r"<text[^>]*>([^<]+)</text>", picture.read_text(encoding="utf-8"))


def test_quality_repeats_to_the_last_digit(shared):
    first, second = (measure("quality", "--set", "madial-zh", "--questions", "60") for _ in range(2))
    assert first == second
    figures = first["madial-zh"]
    assert (figures["all"]["questions"], figures["held out"]["questions"] > 0) == (60, True)
    assert 0.55 < figures["all"]["low"] < figures["all"]["recall_10"] < figures["all"]["high"] < 0.85


@pytest.mark.real_model
@pytest.mark.skipif(not has_minilm(), reason="the local model is not installed")
def test_budgets(shared):
    figures = measure("budgets", "--conversations", "1", "--questions", "200", "--peers")
    assert set(figures) == {"Recollect", "BM25 alone", "vectors alone", "whole sessions"}
    for row in figures.values():
        means = [cell["mean"] for cell in row.values()]
        # More room holds no less, as far as large pieces passed over leave room for small ones.
        assert means[0] <= means[2] <= means[4] <= 1
        assert all(cell["low"] <= cell["mean"] <= cell["high"] for cell in row.values())
    assert all(cell["difference"] == 0 for cell in figures["Recollect"].values())
    assert figures["BM25 alone"]["1000"]["difference"] < 0 < figures["BM25 alone"]["1000"]["mean"]
    assert figures["whole sessions"]["250"]["mean"] < 0.1 < figures["whole sessions"]["4000"]["mean"]


def test_gloss():
    figures = measure("gloss", "--texts", "40", "--rounds", "1")
    assert set(figures) == {"dictionary", "compile", "tagger", "embedding"}
    assert figures["dictionary"]["megabytes"] < 25
    assert figures["embedding"]["cue_ms"] > 0


def test_relevance(shared):
    figures = measure("relevance", "--set", "madial-zh", "--questions", "60")["madial-zh, words alone"]
    assert figures["questions"] > 20
    assert figures["expected error"] < 0.05
    assert figures["area"] > 0.7


def test_accesses(shared):
    figures = measure("accesses", "--set", "madial-zh", "--questions", "60")["madial-zh"]
    assert figures["questions"] > 20
    assert figures["low"] <= figures["gain"] <= figures["high"]


def test_learn(shared):
    table = run("learn.py", "--set", "madial-zh", "--questions", "60")
    [row] = [line for line in table.splitlines() if " text " in line]
    assert float(row.replace("│", " ").split()[1]) > 1


@pytest.mark.real_model
@pytest.mark.skipif(not has_minilm(), reason="the local model is not installed")
def test_weighing(shared):
    printed = run("weighing.py", "vector", "0", "--set", "madial-zh", "--questions", "60")
    rows = dict(line.strip("| ").split(" | ", 1) for line in printed.splitlines() if line.startswith("| "))
    assert set(rows) == {"weight", "in use", "0"}
    assert rows["0"] != rows["in use"]


def test_console():
    need_node("console")
    need_chromium()
    port = str(free_port())
    small = ("--memories", "600", "--entities", "60", "--topics", "40", "--messages", "80", "--port", port)
    seen = measure("console", *small)
    names = ["home", "mind", "ask", "conversations", "knowledge", "topics", "stream", "try", "jobs", "keys"]
    assert [each["screen"] for each in seen] == names
    assert all(0 <= each["bytes"] < 1_000_000 and each["calls"] for each in seen)


@pytest.mark.real_model
def test_blocks(shared):
    figures = measure("blocks", "--conversations", "1", "--questions", "200")
    assert figures["questions"]["all"] > 10
    budgets = [row for name, row in figures.items() if name != "questions"]
    assert [row["lines"] for row in budgets] == sorted(row["lines"] for row in budgets)
    assert budgets[2]["held"] > 0.5
