"""Commands for topics: show the tree and what is filed under it, file memories, rename, move and merge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.markup import escape
from rich.tree import Tree

from recollect.doors.cli.terminal import (
    Agent,
    MemoryIds,
    Tenant,
    User,
    err,
    find_ids,
    id_column,
    out,
    printing,
    shorten_id,
    table_of,
    with_mind,
)
from recollect.doors.words import translate
from recollect.models.memories import Memory
from recollect.models.topics import Filing, Reach, RelatedTopic, Topic, TopicLink, TopicTree

if TYPE_CHECKING:
    from recollect.mind.mind import Mind

commands = typer.Typer()

app = typer.Typer(help="Show what memories are about, and put it in order.", no_args_is_help=True)
Path = Annotated[str, typer.Argument(metavar="PATH", help="The path of a topic, as in 'travel->Japan'.")]
USUAL = Reach()


def print_tree(found: TopicTree) -> None:
    """Print topics below each other."""
    out.print(grow(found) if found.topics else translate("no topics yet"))
    if not found.whole:
        err.print(translate("There are more than {limit}.", limit=len(found.topics)))


@app.command("tree")
@printing(print_tree)
def show_tree(
    agent: Agent,
    user: User = "",
    path: Annotated[str, typer.Option(help="Only this topic and what lies below it.")] = "",
    limit: Annotated[int, typer.Option(help="Most topics to show.", min=1, max=10_000)] = 1_000,
    text: Annotated[bool, typer.Option("--text", help="One line a topic, as a prompt can show it.")] = False,
    tenant: Tenant = "default",
) -> TopicTree | None:
    """Show the topics with their numbers of memories."""
    found = with_mind(agent, user, tenant, lambda mind: mind.topics.tree(path, limit))
    if not text:
        return found
    out.print(found.text, end="", highlight=False, markup=False, soft_wrap=True)
    return None


def print_links(found: list[tuple[TopicLink, Memory]]) -> None:
    """Print what is filed under a topic, and how."""
    table = table_of(id_column("id"), "happened", "memory", "activation", "diffusion", "independence", "related")
    for link, memory in found:
        reach, moment = link.reach, link.occurred_at.isoformat(" ", "minutes")
        numbers = [f"{each:.2f}" for each in (reach.activation, reach.diffusion, reach.independence)]
        related = escape("\n".join(link.related))
        table.add_row(shorten_id(memory.id), moment, escape(memory.content), *numbers, related)
    out.print(table)


@app.command("links")
@printing(print_links)
def show_links(
    path: Path,
    agent: Agent,
    user: User = "",
    limit: Annotated[int, typer.Option(help="Most memories to show.", min=1, max=200)] = 50,
    tenant: Tenant = "default",
) -> list[tuple[TopicLink, Memory]]:
    """Show what is filed under a topic, the newest first, and how."""

    async def work(mind: Mind) -> list[tuple[TopicLink, Memory]]:
        links = await mind.topics.links(path, limit=limit)
        known = {each.id: each for each in await mind.get_many([link.memory_id for link in links])} if links else {}
        return [(link, known[link.memory_id]) for link in links if link.memory_id in known]

    return with_mind(agent, user, tenant, work)


def print_related(found: list[RelatedTopic]) -> None:
    """Print topics, the strongest first."""
    table = table_of("topic", "diffusion", "links")
    for related in found:
        table.add_row(escape(related.path), f"{related.diffusion:.2f}", str(related.links))
    out.print(table)


@app.command("related")
@printing(print_related)
def show_related(path: Path, agent: Agent, user: User = "", tenant: Tenant = "default") -> list[RelatedTopic]:
    """Show the topics that what is filed under one leads to, the strongest first."""
    return with_mind(agent, user, tenant, lambda mind: mind.topics.related(path))


@app.command("link")
def link(
    path: Path,
    ids: MemoryIds,
    agent: Agent,
    user: User = "",
    related: Annotated[list[str] | None, typer.Option(help="A topic that they lead to; repeat it for more.")] = None,
    tenant: Tenant = "default",
) -> None:
    """File memories under a topic, which comes to be if it is new."""

    async def work(mind: Mind) -> Topic:
        found = await find_ids(mind, ids)
        return await mind.topics.link(path, [Filing(each, USUAL, tuple(related or ())) for each in found])

    tell(with_mind(agent, user, tenant, work))


@app.command("unlink")
def unlink(
    path: Path,
    ids: MemoryIds,
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
) -> None:
    """Take memories from a topic; a topic that nothing needs any more goes."""

    async def work(mind: Mind) -> list[UUID]:
        return await mind.topics.unlink(path, await find_ids(mind, ids))

    gone = with_mind(agent, user, tenant, work)
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
