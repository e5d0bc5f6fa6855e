"""Commands that look into recall: list kept recalls, explain and replay one, and evaluate it by your own questions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table

from recollect.doors.cli.recall import read_weight, write_relevance
from recollect.doors.cli.terminal import (
    Agent,
    Tenant,
    User,
    err,
    on_mind,
    out,
    printing,
    table_of,
    with_mind,
    with_options,
)
from recollect.doors.evaluations import (
    QUALITY,
    format_difference,
    format_methods,
    list_budgets,
    list_qualities,
    read_evaluation,
    read_questions,
    shorten,
    to_json,
    to_markdown,
    write_change,
    write_place,
)
from recollect.doors.greeting import translate
from recollect.errors import InvalidInputError
from recollect.mind.recall import compare_evaluations, fit_relevance
from recollect.mind.recall import evaluate as evaluate_mind
from recollect.models.evaluations import Evaluation, RelevanceCalibration
from recollect.models.recall import (
    CandidateOutcome,
    ChannelScore,
    Cue,
    Explanation,
    Period,
    RankedCandidate,
    Replay,
    SavedRecallPage,
)

if TYPE_CHECKING:
    from recollect.mind.mind import Mind

commands = typer.Typer()
recalls_app = typer.Typer(no_args_is_help=True, help="List, explain and replay saved recalls.")

MAX_CATEGORY_LENGTH = 14
MAX_WORST_QUESTIONS = 5
RecallId = Annotated[UUID, typer.Argument(metavar="RECALL_ID", help="Recall ID.")]


def show_recalls(found: SavedRecallPage) -> None:
    """Show kept recalls."""
    out.print(tabulate_recalls(found))
    if found.next_cursor:
        out.print(translate("There are more than {limit}.", limit=len(found.recalls)))


@recalls_app.command("list")
@printing(show_recalls)
@on_mind
async def list_recalls(
    mind: Mind, limit: Annotated[int, typer.Option(help="Maximum number of recalls.", min=1, max=200)] = 20
) -> SavedRecallPage:
    """List saved recalls, newest first."""
    return await mind.recalls.list(limit=limit)


def show_explanation(found: Explanation, *, whole: bool = False) -> None:
    """Show how channels searched, and the hits, or every candidate."""
    for line in format_recall_lines(found):
        out.print(line, highlight=False, soft_wrap=True)
    out.print(tabulate_channels(found))
    shown = [each for each in found.placings if whole or each.fate is CandidateOutcome.HIT]
    out.print(tabulate_placings(shown, fates=whole) if shown else translate("nothing found"))
    rest = len(found.placings) - len(shown)
    if rest:
        out.print(f"{rest} other candidates: --all shows them.", highlight=False)
    if not found.same:
        err.print("This version of Recollect ranks the same candidates otherwise: the recall was kept by another.")


@recalls_app.command()
@printing(show_explanation)
@on_mind
async def explain(
    mind: Mind,
    recall_id: RecallId,
    whole: Annotated[bool, typer.Option("--all", help="Show every candidate, not only hits.")] = False,
) -> Explanation | None:
    """Explain the ranking of a saved recall."""
    found = await mind.recalls.explain(recall_id)
    if not whole:
        return found
    show_explanation(found, whole=True)
    return None


def show_replay(found: Replay) -> None:
    """Show what moved."""
    out.print(tabulate_placings(found.placings, moved=True) if found.placings else translate("nothing found"))
    out.print(describe_replay(found))


@recalls_app.command()
@printing(show_replay)
@on_mind
async def replay(
    mind: Mind,
    recall_id: RecallId,
    as_of: Annotated[datetime | None, typer.Option(help="Run the recall again as of this time (UTC).")] = None,
    weight: Annotated[
        list[str] | None, typer.Option(help="Weight of a channel or preference, for example text=0.5. Repeatable.")
    ] = None,
) -> Replay:
    """Rank a saved recall again with other weights, or run it again as of an earlier time."""
    weights = dict(map(read_weight, weight or ()))
    return await mind.recalls.replay(recall_id, weights, as_of=as_of and as_of.replace(tzinfo=UTC))


@commands.command()
@with_options(
    report=Annotated[Path | None, typer.Option(help="Write a Markdown report to this file.")],
    json=Annotated[Path | None, typer.Option(help="Write the results to this JSON file.")],
    compare=Annotated[Path | None, typer.Option(help="Compare with a file written by --json.")],
    channel=Annotated[list[str] | None, typer.Option(help="Use this channel. Repeatable.")],
    weight=Annotated[
        list[str] | None, typer.Option(help="Weight of a channel or preference, for example text=0.5. Repeatable.")
    ],
    fit=Annotated[
        bool | None, typer.Option("--fit", help="Calibrate relevance on half of the questions and test on the rest.")
    ],
)
def evaluate(
    questions: Annotated[Path, typer.Argument(help="JSON Lines file with `cue` and `expected` per line.")],
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Measure recall quality on your own questions. Changes nothing."""
    asked = read_questions(questions)
    before = read_evaluation(chosen["compare"]) if chosen["compare"] else None
    like = Cue(channels=tuple(chosen["channel"] or ()), weights=dict(map(read_weight, chosen["weight"] or ())))
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("asking", total=len(asked))

        def report(done: int) -> None:
            progress.update(task, completed=done)

        found = with_mind(agent, user, tenant, lambda mind: evaluate_mind(mind, asked, like=like, report=report))
    difference = compare_evaluations(found, before) if before else None
    if before and difference is None:
        raise InvalidInputError("--compare: the two evaluations have no question in common")
    print_evaluation(found)
    if difference:
        out.print(f"against {chosen['compare']}, {difference.questions} questions in common, 95 % in brackets:")
        for line in format_difference(difference):
            out.print(f"  {line}", highlight=False, markup=False)
    if chosen["report"]:
        chosen["report"].write_text(to_markdown(found, difference), encoding="utf-8")
    if chosen["json"]:
        chosen["json"].write_bytes(to_json(found))
    if chosen["fit"]:
        with err.status("fitting"):
            fits = with_mind(agent, user, tenant, lambda mind: fit_relevance(mind, asked, like=like), here=True)
        print_fits(fits)


def print_evaluation(found: Evaluation) -> None:
    """Print the means, and the worst of the questions that found nothing."""
    for head, rows in ((QUALITY, list_qualities(found)), list_budgets(found)):
        table = Table(*(Column(name, justify="right" if place else "left") for place, name in enumerate(head)))
        for name, *cells in rows:
            table.add_row(escape(shorten(name, MAX_CATEGORY_LENGTH)), *cells)
        out.print(table)
    for line in format_methods({name: how for name, how in found.methods.items() if any(map(is_skipped, how))}):
        err.print(line, highlight=False, markup=False)
    nothing = [result for result in found.results if not result.quality.recall_10]
    if nothing:
        said = "{count} questions found nothing they expect among ten hits; the worst first:"
        out.print(translate(said, count=len(nothing)), highlight=False)
    for result in nothing[:MAX_WORST_QUESTIONS]:
        out.print(f"- {shorten(result.question.cue)}", highlight=False, markup=False)
        for expected, place in result.places.items():
            where = "not in the scope" if expected in result.unknown else write_place(place)
            out.print(f"  expected, {where}: {shorten(expected)}", highlight=False, markup=False)
        for above in result.above[:1]:
            out.print(f"  first instead: {shorten(above.content)}", highlight=False, markup=False)


def print_fits(fits: Sequence[RelevanceCalibration]) -> None:
    """Print what fitted tables of relevance are worth on the questions that were held out."""
    if not fits:
        out.print("Too few questions to fit relevance: both halves need evidence among 20 hits.")
    for fit in fits:
        table = Table(f"{fit.script}, {'with vectors' if fit.with_vector else 'words alone'}", "in use", "fitted")
        for place, name in enumerate(("expected error", "area under the curve")):
            table.add_row(name, f"{fit.before[place]:.3f}", f"{fit.after[place]:.3f}")
        table.add_row("logarithmic loss", "", write_change(fit.loss))
        out.print(table)
        values = ", ".join(f"{name} {value:.2f}" for name, value in fit.table.items())
        out.print(f"fitted to {fit.questions[0]}, held out {fit.questions[1]} questions: {values}", highlight=False)
        better = "Better" if fit.better else "Not better than chance explains"
        out.print(f"{better} on the questions held out. Nothing is changed.", highlight=False)


def is_skipped(method: str) -> bool:
    """Return whether a channel did not search."""
    return method.startswith("skipped")


def describe_replay(found: Replay) -> str:
    """Return how a replay compares with the recall, in one line."""
    if found.same:
        return "The hits and scores are those of the recall."
    new = sum(each.before is None for each in found.placings)
    moved = sum(each.before not in (None, each.rank) for each in found.placings)
    return f"{new} of the {len(found.placings)} hits are new, {moved} stand elsewhere."


def format_recall_lines(found: Explanation) -> list[str]:
    """Return the query and its analysis, one line each; defaults are left out."""
    facets = found.facets
    lines = {
        "asked": escape(str(found.cue.get("text", ""))),
        "when": f"{found.asked_at:%F %T} UTC, {found.milliseconds:.1f} ms, {found.status}",
        "as of": str(found.cue.get("as_of", "")),
        "keywords": escape(", ".join(facets.keywords)),
        "names": escape(", ".join(facets.names)),
        "topics": escape(", ".join(facets.topics)),
        "periods": escape(", ".join(map(format_period, facets.periods))),
        "asks about": ", ".join(sorted(facets.asks)),
        "message": escape(found.message),
    }
    return [f"[bold]{name}[/bold]: {line}" for name, line in lines.items() if line]


def format_period(period: Period) -> str:
    """Write a period with the words that name it."""
    span = f"{period.start:%F %R} to {period.end:%F %R}"
    return f"{period.phrase} ({span})" if period.phrase else span


def tabulate_recalls(found: SavedRecallPage) -> Table:
    """Tabulate kept recalls."""
    table = table_of(Column("recall", no_wrap=True, min_width=36), "asked", "status", "hits", "ms", "cue")
    for each in found.recalls:
        numbers = (str(each.hits), f"{each.milliseconds:.1f}")
        table.add_row(str(each.recall_id), f"{each.asked_at:%F %T}", each.status, *numbers, escape(shorten(each.text)))
    return table


def tabulate_channels(found: Explanation) -> Table:
    """Tabulate how each channel searched, its proposals and its weight; then the weights of preferences."""
    table = Table("channel", "weight", "proposed", "from", "to", "how")
    told = sorted({name for each in found.placings for name in each.preferences})
    for name in dict.fromkeys([*found.methods, *found.proposals, *told]):
        scores = [each.score for each in found.proposals.get(name, ())]
        span = (f"{min(scores):.4g}", f"{max(scores):.4g}") if scores else ("", "")
        weight = f"{found.weights[name]:.3g}" if name in found.weights else ""
        method = found.methods.get(name, "preference" if name in told else "")
        table.add_row(escape(name), weight, str(len(scores) or ""), *span, escape(method))
    return table


def tabulate_placings(placings: Sequence[RankedCandidate], *, fates: bool = False, moved: bool = False) -> Table:
    """Tabulate candidates, best first: for each channel its own score and its share, then what preferences add."""
    names = sorted({name for each in placings for name in each.channels})
    extra = (["fate"] if fates else []) + (["before"] if moved else [])
    table = Table("rank", *extra, "score", "relevance", *map(escape, names), "preferences", "when", "memory")
    for each in placings:
        rank = str(each.rank or "")
        numbers = (f"{each.score:.4f}", write_relevance(each.relevance))
        more = ([each.fate.value] if fates else []) + ([str(each.before or "new")] if moved else [])
        parts = [write_part(each.channels.get(name)) for name in names]
        preferences = "\n".join(f"{name} {share:+.4f}" for name, share in each.preferences.items())
        table.add_row(rank, *more, *numbers, *parts, preferences, moment(each), escape(words(each)))
    return table


def write_part(part: ChannelScore | None) -> str:
    """Write a channel's own score and the share it added, or nothing."""
    return f"{part.score:.4g}\n{part.share:+.4f}" if part else ""


def moment(placing: RankedCandidate) -> str:
    """Write when a memory happened, as far as it is known."""
    known = placing.memory or placing.features
    return f"{known.occurred_at:%F %R}" if known else ""


def words(placing: RankedCandidate) -> str:
    """Write what a memory says, or its id if it is no hit or hidden."""
    more = f" (and {len(placing.duplicates)} like it)" if placing.duplicates else ""
    return (shorten(placing.memory.content) if placing.memory else str(placing.id)) + more


commands.add_typer(recalls_app, name="recalls")
