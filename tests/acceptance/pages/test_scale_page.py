"""The page about scale computes with what was measured: its tables follow from the figures, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHARES = (0.001, 0.01, 0.1, 1)
ACTIVE, RECALLS, TURNS, PEAK = 0.1, 20, 5, 5
"""Of all scopes on a day; what each of these asks; and the peak by the mean."""
PAGES = {
    "scale.md": (
        *("disk, one copy", "RAM, a tenth in use", "recalls, turns a second at the peak"),
        *("database cores busy then", "API cores busy then", "log at the peak"),
    ),
    "scale.zh.md": (
        *("磁盘，一份", "内存，十分之一在用", "峰值每秒召回、会话轮数"),
        *("此时忙碌的数据库核", "此时忙碌的 API 核", "峰值日志"),
    ),
}
"""The rows of the table of four sizes."""


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def find_row(text, title, cells):
    """Give the cells of the one table row of that many cells under a title."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    [found] = [row[1:] for row in rows if row[0] == title and len(row) == cells]
    return found


def find_measured(title):
    """Read the numbers that were measured of something."""
    section = read("docs/reference/figures.md").partition("## What a server bears")[2].partition("\n## ")[0]
    numbers = re.findall(r"\d[\d,]*(?:\.\d+)?", " ".join(find_row(section, title, 3)))
    return [float(number.replace(",", "")) for number in numbers]


def compute(share):
    """Compute one column of the table of four sizes."""
    held = find_measured("a memory on disk, with its indexes")[0] * 1e10 * share
    recalls, turns = (1e8 * share * ACTIVE * each * PEAK / 86_400 for each in (RECALLS, TURNS))
    recall, turn = find_measured("a recall, scope of 100"), find_measured("a turn, 8 writers of 8 scopes")
    database, program = ((recalls * recall[side] + turns * turn[side]) / 1000 for side in range(2))
    log = turns * sum(find_measured("log of a turn")) / 1e6
    return (
        *(write_size(held), write_size(held / 10), f"{write_rate(recalls)}, {write_rate(turns)}"),
        *(write_cores(database), write_cores(program), f"{log:.0f} MB/s" if log >= 1 else f"{log:.1f} MB/s"),
    )


def write_size(held):
    return f"{held / 1e12:.2g} TB" if held >= 1e12 else f"{held / 1e9:.0f} GB"


def write_rate(calls):
    return f"{float(f'{calls:.3g}'):,.0f}"


def write_cores(busy):
    return f"{busy:.0f}" if busy >= 0.5 else "below 1"


@pytest.mark.parametrize("page", PAGES)
def test_the_four_sizes_follow_from_the_figures(page):
    text = read(f"docs/explanation/{page}")
    columns = [compute(share) for share in SHARES]
    for number, title in enumerate(PAGES[page]):
        shown = [cell.replace("不到", "below").replace("、", ", ") for cell in find_row(text, title, 5)]
        assert shown == [column[number] for column in columns], title


@pytest.mark.parametrize("page", PAGES)
def test_the_cost_of_a_billion_follows_from_the_figures(page):
    text = read(f"docs/explanation/{page}")
    held = find_measured("a memory on disk, with its indexes")[0] * 1e9
    compact = find_measured("the same, the key of the vectors built anew")[0] * 1e9
    log = find_measured("log of a memory (remember)")
    computed = {
        f"{held / 1e12:.1f} TB", f"{compact / 1e12:.1f} TB", f"{3 * held / 0.7 / 1e12:.1f} TB",
        f"{held / 10 / 1e9:.0f} GB", f"{held / 40 / 1e9:.0f} GB",
        f"{log[0] / 1000:.1f} kB", f"{sum(log) / 1000:.1f} kB",
    }  # fmt: skip
    assert {figure for figure in computed if figure not in text} == set()


def test_the_simulation_counts_the_bytes_that_were_measured():
    [written] = re.findall(r"^MEMORY_BYTES = ([\d_]+)$", read("bench/scale.py"), re.MULTILINE)
    assert int(written) == find_measured("a memory on disk, with its indexes")[0]
