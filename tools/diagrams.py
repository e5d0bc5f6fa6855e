"""Draw the diagrams of docs/explanation as SVG: `python tools/diagrams.py`.

A diagram is a list of boxes, arrows and texts on a grid of pixels; nothing depends on fonts or on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Protocol

FOLDER = Path(__file__).parents[1] / "docs" / "explanation"
INK, LINE, PAPER = "#1f2937", "#64748b", "#ffffff"
FILLS = {"plain": "#f1f5f9", "ours": "#dbeafe", "data": "#dcfce7", "later": "#fef3c7", "past": "#fee2e2"}
FONT = "font-family='system-ui, sans-serif'"
HEAD = (
    "<defs><marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' orient='auto'>"
    f"<path d='M0 0 L8 4 L0 8 z' fill='{LINE}'/></marker></defs>"
)
TEXT_HEIGHT = 17


class Shape(Protocol):
    """Anything that can be drawn."""

    def draw(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Box:
    """A box with lines of text in its middle, the first of them bold."""

    x: int
    y: int
    width: int
    height: int
    text: str
    fill: str = "plain"

    def draw(self) -> str:
        lines = self.text.split("\n")
        top = self.y + self.height / 2 - (len(lines) - 1) * TEXT_HEIGHT / 2
        written = "".join(
            Label(self.x + self.width // 2, round(top + number * TEXT_HEIGHT), line, bold=number == 0).draw()
            for number, line in enumerate(lines)
        )
        frame = f"x='{self.x}' y='{self.y}' width='{self.width}' height='{self.height}' rx='6'"
        return f"<rect {frame} fill='{FILLS[self.fill]}' stroke='{LINE}'/>{written}"


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text around a point."""

    x: int
    y: int
    text: str
    bold: bool = False
    anchor: str = "middle"

    def draw(self) -> str:
        weight = " font-weight='600'" if self.bold else ""
        place = f"x='{self.x}' y='{self.y}' text-anchor='{self.anchor}' dominant-baseline='middle'"
        return f"<text {place} font-size='13' fill='{INK}' {FONT}{weight}>{escape(self.text)}</text>\n"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A straight arrow, dashed if it happens later."""

    x1: int
    y1: int
    x2: int
    y2: int
    dashed: bool = False

    def draw(self) -> str:
        dash = " stroke-dasharray='5 4'" if self.dashed else ""
        ends = f"x1='{self.x1}' y1='{self.y1}' x2='{self.x2}' y2='{self.y2}'"
        return f"<line {ends} stroke='{LINE}' stroke-width='1.5'{dash} marker-end='url(#head)'/>\n"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: its size, its title for those who cannot see it, and its shapes."""

    width: int
    height: int
    title: str
    shapes: tuple[Shape, ...]

    def draw(self) -> str:
        size = f"width='{self.width}' height='{self.height}' viewBox='0 0 {self.width} {self.height}'"
        opening = f"<svg xmlns='http://www.w3.org/2000/svg' {size} role='img'>\n<title>{escape(self.title)}</title>\n"
        paper = f"<rect width='{self.width}' height='{self.height}' rx='8' fill='{PAPER}'/>\n"
        return opening + HEAD + paper + "".join(f"{shape.draw()}" for shape in self.shapes) + "</svg>\n"


def draw_recall() -> Picture:
    channels = ("text: words", "vector: meaning", "keyword", "graph: facts", "topic", "date")
    rows = [(20 + 50 * number, name) for number, name in enumerate(channels)]
    boxes = [Box(330, y, 150, 38, name, "ours") for y, name in rows]
    return Picture(
        960,
        330,
        "A cue is read once, channels propose candidates from one scope, fusion ranks them, and every hit says why.",
        (
            Box(20, 120, 110, 76, "cue\nWhat must Li\nnot eat?"),
            Box(170, 120, 120, 76, "read once\nwords, times,\nnames, vector", "ours"),
            *boxes,
            Box(520, 120, 120, 76, "features\nof candidates:\none round trip", "data"),
            Box(680, 120, 110, 76, "fusion\nweighs, joins,\nexplains", "ours"),
            Box(830, 120, 110, 76, "hits\nscore =\nsum of shares"),
            Arrow(130, 158, 168, 158),
            *(Arrow(290, 158, 328, y + 19) for y, _ in rows),
            *(Arrow(480, y + 19, 518, 158) for y, _ in rows),
            Arrow(640, 158, 678, 158),
            Arrow(790, 158, 828, 158),
            Label(720, 285, "All channels are asked in one round trip, inside one scope."),
        ),
    )


def draw_write_path() -> Picture:
    return Picture(
        960,
        330,
        "A write is checked, embedded if the model answers in time, and stored in one transaction; the rest is a job.",
        (
            Box(20, 40, 110, 60, "caller\nremember"),
            Box(180, 40, 140, 60, "check, analyse\npure functions", "ours"),
            Box(370, 40, 150, 60, "embed\nif in time", "ours"),
            Box(570, 20, 370, 130, "", "data"),
            Label(755, 40, "one transaction in PostgreSQL", bold=True),
            Box(590, 60, 100, 36, "memory", "plain"),
            Box(705, 60, 100, 36, "terms", "plain"),
            Box(820, 60, 100, 36, "features", "plain"),
            Box(590, 104, 100, 36, "vector", "plain"),
            Box(705, 104, 100, 36, "change log", "plain"),
            Box(820, 104, 100, 36, "jobs", "plain"),
            Box(20, 180, 110, 50, "201\nsearchable"),
            Box(570, 230, 370, 70, "worker, later\nmissing vectors, topics, facts, summaries", "later"),
            Arrow(130, 70, 178, 70),
            Arrow(320, 70, 368, 70),
            Arrow(520, 70, 568, 70),
            Arrow(570, 130, 132, 205),
            Arrow(870, 150, 870, 228, dashed=True),
            Arrow(640, 230, 640, 152, dashed=True),
            Label(340, 190, "after the commit"),
        ),
    )


def draw_two_times() -> Picture:
    return Picture(
        760,
        400,
        "Two times of a fact: when it is true in the world, and when it was believed.",
        (
            Label(60, 24, "true in the world (at)", anchor="start"),
            Arrow(60, 350, 60, 40),
            Arrow(60, 350, 730, 350),
            Label(730, 376, "believed (as_of)", anchor="end"),
            *(Label(x, 366, name) for x, name in ((140, "February"), (420, "July"))),
            *(Label(54, y, name, anchor="end") for y, name in ((320, "Jan"), (190, "May"))),
            Box(140, 60, 280, 260, "Li works at Acme\nfrom January, no end known", "past"),
            Box(420, 190, 280, 130, "Li works at Acme\nfrom January to May", "data"),
            Box(420, 60, 280, 130, "Li works at Globex\nfrom May", "data"),
            Label(280, 340, "In July we learn of the move in May: nothing is overwritten.", anchor="start"),
        ),
    )


def draw_shards() -> Picture:
    columns = (270, 500, 730)
    names = ("shard 1", "shard 2", "shard 3")
    tenants = ("tenants A, B", "tenant C, part 1", "tenant C, part 2")
    return Picture(
        960,
        360,
        "API processes look up in a catalog which shard serves a scope; each shard is a PostgreSQL with its standby.",
        (
            Box(20, 150, 120, 60, "callers"),
            Box(400, 20, 330, 60, "API processes and workers\nany number, without state", "ours"),
            Box(20, 20, 190, 60, "catalog\nkeys, map of tenants", "data"),
            *(
                Box(x, 190, 200, 60, f"{name}\n{held}", "data")
                for x, name, held in zip(columns, names, tenants, strict=True)
            ),
            *(Box(x, 295, 200, 40, "standby", "plain") for x in columns),
            Arrow(140, 165, 398, 66),
            Arrow(400, 42, 212, 42),
            *(Arrow(565, 80, x + 100, 188) for x in columns),
            *(Arrow(x + 100, 250, x + 100, 293) for x in columns),
            Arrow(700, 220, 728, 220, dashed=True),
            Label(120, 270, "No query crosses a scope,"),
            Label(120, 290, "so a tenant can move"),
            Label(120, 310, "while it is used."),
        ),
    )


PICTURES = {"recall": draw_recall, "write-path": draw_write_path, "two-times": draw_two_times, "shards": draw_shards}


def main() -> None:
    for name, picture in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture().draw(), encoding="utf-8")
        print(f"docs/explanation/{name}.svg")


if __name__ == "__main__":
    main()
