"""Draw what each factor contributes to a real recall, and how the three modes rank differently.

    uv run python bench/factors.py                  # writes docs/explanation/three-factors.svg
    uv run python bench/factors.py --out some.png

The memories are those of Maria Lopez, saved by Generative Agents, read from ../shared/data; the cue is the demo's.
Where the folder or the local model is absent, the script says so and ends.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from rich.console import Console

from ground import open_folder
from recollect import Hit, Settings
from recollect.core.agents.scoring import resolve_weighing
from recollect.doors.imports.generative_agents.transfer import import_folder
from recollect.llm.build import has_minilm
from recollect.models import Cue, Mode, StreamWeights
from recollect.setting_groups import EmbeddingSettings
from recollect.wiring import open_recollect

ROOT = Path(__file__).resolve().parents[1]
SAVED = ROOT.parent / "shared" / "data" / "ga_july1_step_3_12" / "maria_lopez"
PICTURE = ROOT / "docs" / "explanation" / "three-factors.svg"
CUE, LIMIT = "asking questions", 30
MODES = (Mode.NEWEST, Mode.ORIGINAL, Mode.PAPER)
FACTORS = ("similarity", "importance", "recency")
COLOURS = {"similarity": "#4477aa", "importance": "#ddaa33", "recency": "#bb5566"}
GREY = "#555555"
AGES, HOURS = mpl.colormaps["viridis_r"], (9, 15)
"""Late is dark; nearly all of the memories are of these hours of one day."""
EPOCH = datetime(2023, 1, 1, tzinfo=UTC)
LONGEST_LABEL = 56
STYLE = {"svg.hashsalt": "recollect", "svg.fonttype": "none", "font.size": 8.5, "font.family": "DejaVu Sans"}
console = Console()
Hits = dict[Mode, Sequence[Hit]]


async def recall() -> Hits:
    """Import the saved memories and recall by the same cue in every mode."""
    with open_folder("factors") as folder:
        settings = Settings(
            database_url="embedded",
            data_dir=folder / "data",
            embedder="local",
            embedding=EmbeddingSettings(wait_timeout_seconds=60),
        )
        async with open_recollect(settings, work=False) as recollect:
            mind = await recollect.mind("maria_lopez")
            with console.status("importing and embedding"):
                await import_folder(recollect, mind, SAVED, lambda *_: None)
            cues = [
                Cue(CUE, channels=("stream",), limit=LIMIT, touch=False, weighing=StreamWeights(mode=mode))
                for mode in MODES
            ]
            found = await mind.recall_each(cues, isolated=True)
    return {mode: recollection.hits for mode, recollection in zip(MODES, found, strict=True)}


def draw(hits: Hits) -> Figure:
    """Lay both panels out: a row is a hit, and on the right its place in every mode."""
    mpl.rcParams |= {
        "svg.hashsalt": "recollect",
        "svg.fonttype": "none",
        "font.size": 8.5,
        "font.family": "DejaVu Sans",
    }
    figure = Figure(figsize=(13, 8.6), layout="constrained")
    bars, modes = figure.subplots(1, 2, sharey=True, width_ratios=(1.6, 1))
    draw_contributions(bars, hits[Mode.NEWEST])
    draw_modes(modes, hits)
    bars.set_ylim(LIMIT + 3.9, 0.2)
    return figure


def draw_contributions(axes: Axes, hits: Sequence[Hit]) -> None:
    """Stack what the factors add to each hit's score."""
    recency, similarity, importance = resolve_weighing(StreamWeights(), StreamWeights()).weights
    weights = {"recency": recency, "similarity": similarity, "importance": importance}
    rows = range(1, len(hits) + 1)
    ends = [0.0] * len(hits)
    for factor in FACTORS:
        parts = [weights[factor] * getattr(hit.channels["stream"].factors, factor) for hit in hits]
        label = f"{factor}, at most {weights[factor]:g}"
        axes.barh(rows, parts, left=ends, height=0.78, color=COLOURS[factor], label=label)
        ends = [end + part for end, part in zip(ends, parts, strict=True)]
    for row, end in zip(rows, ends, strict=True):
        axes.text(end + 0.04, row, f"{end:.2f}", va="center", color=GREY)
    axes.set_yticks(rows, [name(hit) for hit in hits])
    axes.set_xlim(0, 5.5)
    axes.set_xlabel("score = recency + similarity + importance, each scaled over all candidates and weighed")
    axes.set_title(f"What comes to mind at “{CUE}”, and why", loc="left", fontweight="bold")
    axes.legend(loc="center right", frameon=False, fontsize="large")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def name(hit: Hit) -> str:
    """Say in one line what a hit is and when it happened."""
    text = hit.memory.content
    short = text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1].rstrip() + "…"
    return f"{short}   {hit.memory.kind}  {hit.memory.last_accessed_at:%H:%M}"


def draw_modes(axes: Axes, hits: Hits) -> None:
    """Put each mode's hits in a column, coloured by their time, and join those that two neighbours share."""
    shade = Normalize(*HOURS)
    places = [{hit.memory.id: place for place, hit in enumerate(hits[mode], 1)} for mode in MODES]
    usual = places[0].keys()
    for column, (mode, found) in enumerate(zip(MODES, places, strict=True)):
        following = places[column + 1] if column + 1 < len(places) else {}
        for place, hit in enumerate(hits[mode], 1):
            colour, here = AGES(shade(hour(hit))), hit.memory.id
            axes.plot(column, place, "o", ms=7, mew=1.6, mec=colour, mfc=colour if here in usual else "white", zorder=3)
            if here in following:
                axes.plot([column, column + 1], [place, following[here]], color=colour, lw=1.4, alpha=0.75)
        shared = "" if column == 0 else f"{len(usual & found.keys())} shared\nwith {MODES[0]}"
        mean = timedelta(hours=fmean(map(hour, hits[mode])))
        axes.text(column, LIMIT + 1, f"{EPOCH + mean:%H:%M}\non average\n{shared}", ha="center", va="top", color=GREY)
    axes.set_xticks(range(len(MODES)), [f"{mode}" for mode in MODES], fontweight="bold")
    axes.xaxis.tick_top()
    axes.set_xlim(-0.45, len(MODES) - 0.55)
    axes.set_title("The same cue in the three modes", loc="left", fontweight="bold", pad=10)
    axes.tick_params(length=0, labelleft=False)
    axes.spines[:].set_visible(False)
    bar = axes.figure.colorbar(
        ScalarMappable(shade, AGES), ax=axes, shrink=0.55, pad=0.02, extend="both", format="{x:.0f}:00"
    )
    bar.set_label(f"last accessed (hollow: not a hit of {MODES[0]})")
    bar.ax.invert_yaxis()
    bar.outline.set_visible(False)


def hour(hit: Hit) -> float:
    """Give the hour of the day of a hit's last access."""
    moment = hit.memory.last_accessed_at
    return moment.hour + moment.minute / 60


def main() -> None:
    """Recall and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture goes; its ending says the format")
    asked = parser.parse_args()
    if not SAVED.exists():
        console.print("Nothing is drawn: the saved memories, ../shared/data, are not there.")
    elif not has_minilm():
        console.print("Nothing is drawn: the local model is not installed.")
    else:
        figure = draw(asyncio.run(recall()))
        # No date and no version in the file: it changes only when the picture does.
        metadata = {"Date": None, "Creator": None} if asked.out.suffix == ".svg" else {}
        figure.savefig(asked.out, dpi=110, metadata=metadata)
        console.print(f"{asked.out} is drawn.")


if __name__ == "__main__":
    main()
