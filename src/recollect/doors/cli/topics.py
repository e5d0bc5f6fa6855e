"""Commands for topics: show the tree and what is filed under it, file memories, rename, move and merge."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from recollect.doors.cli.terminal import Agent, Tenant, User, err, out, with_mind
from recollect.doors.words import translate
from recollect.mind.mind import Mind
from recollect.models.topics import Filing, Reach, Topic, TopicTree

commands = typer.Typer()

app = typer.Typer(help="Show what memories are about, and put it in order.", no_args_is_help=True)
Path = Annotated[str, typer.Argument(metavar="PATH", help="The path of a topic, as in 'travel->Japan'.")]
USUAL = Reach()


@app.command("tree")
def show_tree(
    agent: Agent,
    user: User = "",
    path: Annotated[str, typer.Option(help="Only this topic and what lies below it.")] = "",
    limit: Annotated[int, typer.Option(help="Most topics to show.", min=1, max=10_000)] = 1_000,
    text: Annotated[bool, typer.Option("--text", help="One line a topic, as a prompt can show it.")] = False,
    tenant: Tenant = "default",
) -> None:
    """Show the topics with their numbers of memories."""
    found = with_mind(agent, user, tenant, lambda mind: mind.topics.tree(path, limit))
    if text:
        out.print(found.text, end="", highlight=False, markup=False, soft_wrap=True)
    else:
        out.print(grow(found) if found.topics else translate("no topics yet"))
    if not found.whole:
        err.print(translate("There are more than {limit}.", limit=limit))


@app.command("links")
def show_links(
    path: Path,
    agent: Agent,
    user: User = "",
    limit: Annotated[int, typer.Option(help="Most memories to show.", min=1, max=200)] = 50,
    tenant: Tenant = "default",
) -> None:
    """Show what is filed under a topic, the newest first, and how."""

    async def work(mind: Mind) -> Table:
        table = Table("happened", "memory", "activation", "diffusion", "independence", "related", "id")
        for link in await mind.topics.links(path, limit=limit):
            memory, reach = await mind.get(link.memory_id), link.reach
            numbers = [f"{each:.2f}" for each in (reach.activation, reach.diffusion, reach.independence)]
            moment = link.occurred_at.isoformat(" ", "minutes")
            table.add_row(moment, escape(memory.content), *numbers, escape("\n".join(link.related)), str(memory.id))
        return table

    out.print(with_mind(agent, user, tenant, work))


@app.command("related")
def show_related(path: Path, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Show the topics that what is filed under one leads to, the strongest first."""
    table = Table("topic", "diffusion", "links")
    for related in with_mind(agent, user, tenant, lambda mind: mind.topics.related(path)):
        table.add_row(escape(related.path), f"{related.diffusion:.2f}", str(related.links))
    out.print(table)


@app.command("link")
def link(
    path: Path,
    ids: Annotated[list[UUID], typer.Argument(metavar="ID...", help="Ids of memories.")],
    agent: Agent,
    user: User = "",
    related: Annotated[list[str] | None, typer.Option(help="A topic that they lead to; repeat it for more.")] = None,
    tenant: Tenant = "default",
) -> None:
    """File memories under a topic, which comes to be if it is new."""
    filings = [Filing(memory_id, USUAL, tuple(related or ())) for memory_id in ids]
    tell(with_mind(agent, user, tenant, lambda mind: mind.topics.link(path, filings)))


@app.command("unlink")
def unlink(
    path: Path,
    ids: Annotated[list[UUID], typer.Argument(metavar="ID...", help="Ids of memories.")],
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
) -> None:
    """Take memories from a topic; a topic that nothing needs any more goes."""
    gone = with_mind(agent, user, tenant, lambda mind: mind.topics.unlink(path, ids))
    out.print(f"{len(gone)} memories taken from it.", highlight=False)


@app.command("rename")
def rename(
    path: Path,
    name: Annotated[str, typer.Argument(help="Its new name.")],
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
) -> None:
    """Give a topic another name."""
    tell(with_mind(agent, user, tenant, lambda mind: mind.topics.rename(path, name)))


@app.command("move")
def move(
    path: Path,
    agent: Agent,
    user: User = "",
    under: Annotated[str, typer.Option(help="The topic to bring it under.", show_default="to the roots")] = "",
    tenant: Tenant = "default",
) -> None:
    """Bring a topic with all below it under another one, which comes to be if it is new."""
    tell(with_mind(agent, user, tenant, lambda mind: mind.topics.move(path, under)))


@app.command("merge")
def merge(
    path: Path,
    into: Annotated[str, typer.Argument(help="The path of the topic that absorbs it.")],
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
) -> None:
    """Let one topic absorb another with all below it."""
    tell(with_mind(agent, user, tenant, lambda mind: mind.topics.merge(path, into)))


def tell(topic: Topic) -> None:
    """Say where a topic is now and what is filed there."""
    counted = f"{topic.memories} memories, {topic.below} below it"
    out.print(f"{escape(topic.path)}: {counted}", highlight=False, soft_wrap=True)


def grow(found: TopicTree) -> Tree:
    """Draw topics below each other."""
    root = Tree("topics")
    branches: list[tuple[str, Tree]] = []
    for topic in found.topics:
        while branches and not topic.path.startswith(branches[-1][0]):
            branches.pop()
        above = branches[-1][1] if branches else root
        drawn = above.add(f"{escape(topic.name)} [dim]{topic.memories}[/dim]")
        branches.append((f"{topic.path}->", drawn))
    return root


commands.add_typer(app, name="topics")
