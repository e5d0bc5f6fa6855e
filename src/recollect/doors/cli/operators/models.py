"""Local embedding models: list them, pull their files from a hub, a mirror or a folder, and use one."""

from __future__ import annotations

import asyncio
import re
import tomllib
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Column, Table

from recollect.doors.cli.terminal import ProgressBars, Yes, err, out, printing, table_of
from recollect.errors import SetupError
from recollect.models.outside import ModelFiles
from recollect.settings import Settings, find_toml
from recollect.wiring import find_models

commands = typer.Typer()
model_app = typer.Typer(no_args_is_help=True, help="Download and use local embedding models.")
Name = Annotated[str, typer.Argument(help="Name from `recollect admin model list`, or OWNER/NAME on the hub.")]
MEGABYTE = 1_000_000
AFTERWARDS = (
    "A new database starts with this model. A database with vectors of another model keeps them, and recalls by words "
    "until you run `recollect admin embeddings change` with this setting. Then restart the API and the worker."
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that is known by name, that was pulled, or both."""

    name: str
    licence: str
    megabytes: int
    state: str
    languages: str = ""
    dimensions: int | None = None


def show_choices(choices: list[ModelChoice]) -> None:
    """Show the models as a table."""
    table = table_of(
        "name", "languages", Column("dimensions", justify="right"), "licence", Column("MB", justify="right"), ""
    )
    for each in choices:
        size = f"{each.megabytes:,}"
        table.add_row(
            escape(each.name), each.languages, str(each.dimensions or ""), escape(each.licence), size, each.state
        )
    out.print(table)


@model_app.command("list")
@printing(show_choices)
def list_models() -> list[ModelChoice]:
    """List known and downloaded models."""
    models = find_models(Settings())
    pulled = {model.name: model for model in models.list()}
    known = [
        ModelChoice(each.name, each.licence, each.megabytes, describe_model(pulled.pop(each.name, None)),
                    each.languages, each.dimensions)
        for each in models.known()
    ]  # fmt: skip
    others = [
        ModelChoice(model.name, model.licence, round(model.size / MEGABYTE), describe_model(model))
        for model in pulled.values()
    ]
    return known + others


@model_app.command("pull")
def pull_model(
    name: Name,
    source: Annotated[
        str, typer.Option("--from", help="Hub URL, mirror URL or folder.", show_default="RECOLLECT_EMBEDDING__HUB_URL")
    ] = "",
    repository: Annotated[str, typer.Option("--repo", help="OWNER/NAME, if the source uses another one.")] = "",
    revision: Annotated[str, typer.Option(help="Branch, tag or commit.", show_default="the newest")] = "",
    yes: Yes = False,
) -> None:
    """Download a model after showing its license and checksums. Resumes an interrupted download."""
    models = find_models(Settings())
    plan = models.plan(name, source, repository, revision)
    out.print(f"{escape(plan.repository)} from {escape(plan.source)}, revision {escape(plan.revision) or 'none'}")
    out.print(f"Licence: {escape(plan.licence)}")
    show_files(plan)
    if not yes:
        typer.confirm(f"Fetch {plan.size / MEGABYTE:,.1f} MB?", abort=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    sizes = {each.path: each.size or 0 for each in plan.files}
    with Progress(*columns, console=err) as progress:
        steps = ProgressBars(progress)
        pulled = models.pull(plan, lambda path, done: steps(path, done, max(done, sizes[path])))
    if any(not each.sha256 for each in plan.files):
        out.print("Fetched. Compare the checksums that the source did not name:")
        show_files(pulled)
    out.print(f"Next: recollect admin model use {escape(pulled.name)}", highlight=False)


@model_app.command("use")
def use_model(name: Annotated[str, typer.Argument(help="Downloaded model.")]) -> None:
    """Verify and select a downloaded model. Writes the setting to the TOML file if there is one."""
    space = asyncio.run(find_models(Settings()).use(name))
    toml = find_toml()
    if toml:
        toml.write_text(set_names(toml.read_text(encoding="utf-8"), space), encoding="utf-8")
    out.print(f"The files are verified and pinned. {f'Written to {toml}:' if toml else 'Set:'}", soft_wrap=True)
    out.print(f"RECOLLECT_EMBEDDER=local\nRECOLLECT_EMBEDDER_MODEL={escape(space)}", highlight=False, soft_wrap=True)
    out.print(AFTERWARDS, highlight=False)


def set_names(text: str, space: str) -> str:
    """Return the text of a TOML file with a pulled model as the embedder; the rest is unchanged."""
    for name, value in (("embedder", "local"), ("embedder_model", space)):
        line = f'{name} = "{value}"'
        text, count = re.subn(rf"^{name}[ \t]*=.*$", line, text, count=1, flags=re.MULTILINE)
        # At the top, where no table has begun.
        text = text if count else f"{line}\n{text}"
    written = tomllib.loads(text)
    if (written.get("embedder"), written.get("embedder_model")) != ("local", space):
        raise SetupError(f"Cannot edit the TOML file. Set embedder_model to {space} in it.")
    return text


def describe_model(model: ModelFiles | None) -> str:
    """Return whether a model is pulled and in use."""
    if model is None:
        return ""
    return "pulled, in use" if model.pinned else "pulled"


def number(name: str) -> Column:
    """Make a column of numbers."""
    return Column(name, justify="right")


def show_files(model: ModelFiles) -> None:
    """Show the files of a model, each with its size and its checksum as far as they are known."""
    table = Table("file", number("bytes"), Column("sha256", overflow="fold"))
    for each in model.files:
        size = "not stated" if each.size is None else f"{each.size:,}"
        table.add_row(escape(each.path), size, each.sha256 or "not stated")
    out.print(table)


commands.add_typer(model_app, name="model")
