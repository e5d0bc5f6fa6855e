"""Local embedding models: list them, pull their files from a hub, a mirror or a folder, and use one."""

from __future__ import annotations

import asyncio
import re
import tomllib
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Column, Table

from recollect.doors.cli.terminal import Steps, Yes, err, out
from recollect.errors import SetupError
from recollect.models.outside import ModelFiles
from recollect.settings import Settings, find_toml
from recollect.wiring import find_models

commands = typer.Typer()
model_app = typer.Typer(no_args_is_help=True, help="Pull embedding models that run in this process, and use them.")
Name = Annotated[str, typer.Argument(help="A name of `recollect model list`, or OWNER/NAME on the hub.")]
MEGABYTE = 1_000_000
AFTERWARDS = (
    "A new database starts with this model. A database with vectors of another model keeps them, and recalls by words "
    "until you run `recollect space change` with this setting. Then restart the API and the worker."
)


@model_app.command("list")
def list_models() -> None:
    """List the models that are known by name, and those that were pulled."""
    models = find_models(Settings())
    pulled = {model.name: model for model in models.list()}
    table = Table(
        "name", "languages", Column("dimensions", justify="right"), "licence", Column("MB", justify="right"), ""
    )
    for known in models.known():
        state = describe(pulled.pop(known.name, None))
        table.add_row(known.name, known.languages, str(known.dimensions), known.licence, f"{known.megabytes:,}", state)
    for model in pulled.values():
        size = f"{model.size / MEGABYTE:,.0f}"
        table.add_row(escape(model.name), "", "", escape(model.licence), size, describe(model))
    out.print(table)


@model_app.command("pull")
def pull_model(
    name: Name,
    source: Annotated[
        str, typer.Option("--from", help="Address of a hub or mirror, or a folder.", show_default="RECOLLECT_HUB_URL")
    ] = "",
    repository: Annotated[str, typer.Option("--repo", help="OWNER/NAME, where the source has another.")] = "",
    revision: Annotated[str, typer.Option(help="Branch, tag or commit.", show_default="the newest")] = "",
    yes: Yes = False,
) -> None:
    """Fetch a model's files; show licence and checksums first. An interrupted pull goes on where it stopped."""
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
        steps = Steps(progress)
        pulled = models.pull(plan, lambda path, done: steps(path, done, max(done, sizes[path])))
    if any(not each.sha256 for each in plan.files):
        out.print("Fetched. Compare the checksums that the source did not name:")
        show_files(pulled)
    out.print(f"Next: recollect model use {escape(pulled.name)}", highlight=False)


@model_app.command("use")
def use_model(name: Annotated[str, typer.Argument(help="A model that was pulled.")]) -> None:
    """Verify a pulled model, run it once, pin its checksums, and set it: in the TOML file if there is one."""
    space = asyncio.run(find_models(Settings()).use(name))
    toml = find_toml()
    if toml:
        toml.write_text(set_names(toml.read_text(encoding="utf-8"), space), encoding="utf-8")
    out.print(f"The files are verified and pinned. {f'Written to {toml}:' if toml else 'Set:'}", soft_wrap=True)
    out.print(f"RECOLLECT_EMBEDDER=local\nRECOLLECT_EMBEDDER_MODEL={escape(space)}", highlight=False, soft_wrap=True)
    out.print(AFTERWARDS, highlight=False)


def set_names(text: str, space: str) -> str:
    """Return the text of a TOML file in which a pulled model is the embedder; all else stays as it is."""
    for name, value in (("embedder", "local"), ("embedder_model", space)):
        line = f'{name} = "{value}"'
        text, count = re.subn(rf"^{name}[ \t]*=.*$", line, text, count=1, flags=re.MULTILINE)
        # At the top, where no table has begun.
        text = text if count else f"{line}\n{text}"
    written = tomllib.loads(text)
    if (written.get("embedder"), written.get("embedder_model")) != ("local", space):
        raise SetupError(f"The TOML file cannot be changed here: set embedder_model to {space} in it.")
    return text


def describe(model: ModelFiles | None) -> str:
    """Say whether a model is here."""
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
