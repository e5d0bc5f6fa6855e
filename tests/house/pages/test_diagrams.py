"""The diagrams of the pages are those that the script draws."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

import diagrams
import pages


@pytest.mark.parametrize("name", diagrams.PICTURES)
def test_a_diagram_is_what_the_script_draws(name):
    drawn = diagrams.PICTURES[name]().draw()
    assert (diagrams.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == drawn, "run `python tools/diagrams.py`"


@pytest.mark.parametrize("name", diagrams.PICTURES)
def test_everything_lies_on_the_paper(name):
    picture = ET.fromstring(diagrams.PICTURES[name]().draw())
    width, height = float(picture.get("width")), float(picture.get("height"))
    for shape in picture.iter("{http://www.w3.org/2000/svg}rect"):
        x, y = float(shape.get("x", 0)), float(shape.get("y", 0))
        assert 0 <= x <= x + float(shape.get("width")) <= width
        assert 0 <= y <= y + float(shape.get("height")) <= height


def test_every_diagram_is_shown_on_a_page():
    shown = "\n".join(page.read_text(encoding="utf-8") for page in pages.english())
    assert [name for name in diagrams.PICTURES if f"{name}.svg)" not in shown] == []
