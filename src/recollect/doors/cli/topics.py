"""Commands for topics: show the tree and its memories; file memories; update and merge topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.tree import Tree

from recollect.doors.cli.terminal import (
    MemoryIds,
    err,
    find_ids,
    id_column,
    on_mind,
    out,
    printing,
    shorten_id,
    table_of,
)
from recollect.doors.greeting import translate
from recollect.models.memories import Memory
from recollect.models.topics import LinkStrength, NewTopicLink, RelatedTopic, Topic, TopicLink, TopicTree

if TYPE_CHECKING:
    from recollect.mind.mind import Mind

commands = typer.Typer()

app = typer.Typer(help="Show and edit the topic tree.", no_args_is_help=True)
Path = Annotated[str, typer.Argument(metavar="PATH", help="Topic path, for example 'travel->Japan'.")]
DEFAULT_LIMIT = LinkStrength()


def print_tree(found: TopicTree) -> None:
    """Print topics below each other."""
    out.print(grow(found) if found.topics else translate("no topics yet"))
    if not found.whole:
        err.print(translate("There are more than {limit}.", limit=len(found.topics)))


@app.command("tree")
@printing(print_tree)
@on_mind
async def show_tree(
    mind: Mind,
    path: Annotated[str, typer.Option(help="Only this topic and its subtopics.")] = "",
    limit: Annotated[int, typer.Option(help="Maximum number of topics.", min=1, max=10_000)] = 1_000,
    text: Annotated[bool, typer.Option("--text", help="One line per topic, as in a prompt.")] = False,
) -> TopicTree | None:
    """Show the topic tree with the number of memories per topic."""
    found = await mind.topics.tree(path, limit)
    if not text:
        return found
    out.print(found.text, end="", highlight=False, markup=False, soft_wrap=True)
    return None


def print_links(found: list[tuple[TopicLink, Memory]]) -> None:
    """Print the memories filed under a topic, with their weights."""
    table = table_of(id_column("id"), "happened", "memory", "activation", "diffusion", "independence", "related")
    for link, memory in found:
        reach, moment = link.reach, link.occurred_at.isoformat(" ", "minutes")
        numbers = [f"{each:.2f}" for each in (reach.activation, reach.diffusion, reach.independence)]
        related = escape("\n".join(link.related))
        table.add_row(shorten_id(memory.id), moment, escape(memory.content), *numbers, related)
    out.print(table)


@app.command("links")
@printing(print_links)
@on_mind
async def show_links(
    mind: Mind,
    path: Path,
    limit: Annotated[int, typer.Option(help="Maximum number of memories.", min=1, max=200)] = 50,
) -> list[tuple[TopicLink, Memory]]:
    """List the memories of a topic, newest first."""
    links = await mind.topics.links(path, limit=limit)
    if not links:
        return []
    known = {each.id: each for each in (await mind.list(ids=[link.memory_id for link in links])).memories}
    return [(link, known[link.memory_id]) for link in links if link.memory_id in known]


def print_related(found: tuple[RelatedTopic, ...]) -> None:
    """Print topics, the strongest first."""
    table = table_of("topic", "diffusion", "links")
    for related in found:
        table.add_row(escape(related.path), f"{related.diffusion:.2f}", str(related.links))
    out.print(table)


@app.command("related")
@printing(print_related)
@on_mind
async def show_related(mind: Mind, path: Path) -> tuple[RelatedTopic, ...]:
    """List related topics, strongest first."""
    return (await mind.topics.tree(path, 1)).related


@app.command("link")
@on_mind
async def link(
    mind: Mind,
    path: Path,
    ids: MemoryIds,
    related: Annotated[list[str] | None, typer.Option(help="Related topic. Repeatable.")] = None,
) -> None:
    """Add memories to a topic. Creates the topic if needed."""
    links = [NewTopicLink(each, DEFAULT_LIMIT, tuple(related or ())) for each in await find_ids(mind, ids)]
    describe_topic(await mind.topics.link(path, links))


@app.command("unlink")
@on_mind
async def unlink(mind: Mind, path: Path, ids: MemoryIds) -> None:
    """Remove memories from a topic. Empty topics are deleted."""
    gone = await mind.topics.unlink(path, await find_ids(mind, ids))
    out.print(f"{len(gone)} memories taken from it.", highlight=False)


@app.command("update")
@on_mind
async def update(
    mind: Mind,
    path: Path,
    name: Annotated[str | None, typer.Option(help="New name.", show_default="unchanged")] = None,
    parent: Annotated[
        str | None, typer.Option(help="Path of the new parent topic; empty for the root.", show_default="unchanged")
    ] = None,
) -> None:
    """Rename a topic, or move it with its subtopics. Creates the parent if needed."""
    describe_topic(await mind.topics.update(path, name=name, parent=parent))


@app.command("merge")
@on_mind
async def merge(mind: Mind, path: Path, into: Annotated[str, typer.Argument(help="Path of the target topic.")]) -> None:
    """Merge a topic and its subtopics into another topic."""
    describe_topic(await mind.topics.update(path, into=into))


def describe_topic(topic: Topic) -> None:
    """Print a topic's new path and its counts."""
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
