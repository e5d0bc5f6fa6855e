"""How checkpoints lie in items, and what each method of a checkpointer asks of them, step by step.

Every item has its whole name in its path and the same key, so that what is to go can be listed without being read:
`checkpoints / states | values | writes / thread / levels of a nested graph / "|" / ...`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeAlias, cast

from langchain_core.runnables import RunnableConfig as Config
from langgraph.checkpoint import base
from langgraph.checkpoint.serde.base import SerializerProtocol
from recollect_langchain.connection import Steps

from recollect.errors import ConflictError
from recollect.models.items import DropItem, FindItems, GetItem, Item, ListPaths, Path, PutItem

Saver: TypeAlias = base.BaseCheckpointSaver[str]
Writes: TypeAlias = Sequence[tuple[str, Any]]
ROOT, STATES, VALUES, WRITES, KEY, END, METADATA = "checkpoints", "states", "values", "writes", ".", "|", "metadata."
PIECE, BATCH_SIZE, MOST, PAGE = 900_000, 1_900_000, 1_000, 20
"""How much text an item and a batch hold, how many operations a batch, as the server takes it; and how much a page."""


def place(kind: str, config: Config, *names: str) -> Path:
    """Say where something of a thread lies."""
    asked = config["configurable"]
    levels = [level for level in str(asked.get("checkpoint_ns") or "").split("|") if level]
    return (ROOT, kind, str(asked["thread_id"]), *levels, END, *names)


def to_config(state: Path, checkpoint_id: str) -> Config:
    """Name a checkpoint as LangGraph does, beside the one whose path is given."""
    level = "|".join(state[3:-2])
    return {"configurable": {"thread_id": state[2], "checkpoint_ns": level, "checkpoint_id": checkpoint_id}}


def pack(serde: SerializerProtocol, path: Path, value: object, **beside: Any) -> Iterator[PutItem]:  # noqa: ANN401
    """Write a value as items that are small enough."""
    kind, data = serde.dumps_typed(value)
    text = base64.b64encode(data).decode()
    for number, start in enumerate(range(0, len(text) or 1, PIECE)):
        piece = {"type": kind, "data": text[start : start + PIECE]} | beside
        yield PutItem((*path, f"{number:04}"), KEY, piece, memory=False)


def unpack(serde: SerializerProtocol, items: Iterable[Item]) -> Any:  # noqa: ANN401 - whatever was packed
    """Read a value from its items."""
    pieces = [cast("Mapping[str, str]", item.value) for item in sorted(items, key=lambda item: item.path)]
    return serde.loads_typed((pieces[0]["type"], base64.b64decode("".join(piece["data"] for piece in pieces))))


def to_parts(state: Item) -> tuple[Path, list[Path]]:
    """Say where a checkpoint's writes lie, and the values of its channels."""
    values = cast("Mapping[str, str]", state.value["values"])
    return (ROOT, WRITES, *state.path[2:]), [(ROOT, VALUES, *state.path[2:-1], *named) for named in values.items()]


def join(serde: SerializerProtocol, state: Item, found: Mapping[Path, Iterable[Item]]) -> base.CheckpointTuple:
    """Put a checkpoint together from all that lies where it says."""
    value = cast("Mapping[str, Any]", state.value)
    noted, parts = to_parts(state)
    values = {path[-2]: unpack(serde, items) for path in parts if (items := found[path])}
    writes: dict[Path, list[Item]] = {}
    for item in found[noted]:
        writes.setdefault(item.path[:-1], []).append(item)
    said = [(cast("Mapping[str, Any]", items[0].value), items) for items in writes.values()]
    said.sort(key=lambda each: base.writes_sort_key(each[0]["task_path"], each[0]["task"], each[0]["index"]))
    return base.CheckpointTuple(
        to_config(state.path, value["id"]),
        unpack(serde, [state]) | {"channel_values": values},
        cast("Any", {name[len(METADATA) :]: value[name] for name in value if name.startswith(METADATA)}),
        to_config(state.path, value["parent"]) if value["parent"] else None,
        [(write["task"], write["channel"], unpack(serde, items)) for write, items in said],
    )


def putting(operations: Iterable[PutItem]) -> Steps[None]:
    """Put everything: in one batch while that has room; what comes last is never there without the rest."""
    batch: list[PutItem] = []
    size = 0
    for put in operations:
        size += len(str(put.value["data"]))
        if size > BATCH_SIZE or len(batch) == MOST:
            yield ("batch", batch)
            batch, size = [], len(str(put.value["data"]))
        batch.append(put)
    if batch:
        yield ("batch", batch)


def reading(asked: FindItems | ListPaths) -> Steps[list[Any]]:
    """Find or list everything from its offset on; a thread called `*` is listed with all the others."""
    read: list[Any] = []
    while True:
        [found] = yield ("batch", [replace(asked, limit=MOST, offset=asked.offset + len(read))])
        read += found
        if len(found) < MOST:
            return read


def put(self: Saver, config: Config, checkpoint: Any, metadata: Any, new_versions: Any) -> Steps[Config]:  # noqa: ANN401
    """Put the values that changed, and the checkpoint that names all that it consists of."""
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    puts: list[PutItem] = []
    for channel, version in new_versions.items():
        if channel in values:
            puts += pack(self.serde, place(VALUES, config, channel, str(version)), values[channel])
    kept = base.get_serializable_checkpoint_metadata(config, metadata)
    named = {"id": checkpoint["id"], "parent": config["configurable"].get("checkpoint_id")}
    parts = {channel: str(versions[channel]) for channel in values if channel in versions}
    beside = {METADATA + name: value for name, value in kept.items()} | named | {"values": parts}
    path = place(STATES, config, checkpoint["id"])
    state, *rest = pack(self.serde, path, {**checkpoint, "channel_values": {}}, **beside)
    if rest:
        raise ValueError(f"a checkpoint must fit {PIECE} characters without its values: nest graphs, or split them")
    yield from putting([*puts, replace(state, path=path)])
    return to_config(path, checkpoint["id"])


def put_writes(self: Saver, config: Config, writes: Writes, task_id: str, task_path: str = "") -> Steps[None]:
    """Put a task's writes: what it said first stands, but an error, an interrupt or a resumption may be said again."""
    path = place(WRITES, config, config["configurable"]["checkpoint_id"], task_id)
    puts: list[PutItem] = []
    for number, (channel, value) in enumerate(writes):
        index = base.WRITES_IDX_MAP.get(channel, number)
        beside = {"channel": channel, "task": task_id, "task_path": task_path, "index": index}
        packed = pack(self.serde, (*path, str(index)), value, **beside)
        puts += [replace(each, expected=0 if index >= 0 else None) for each in packed]
    try:
        yield from putting(puts)
    except ConflictError:
        there = set((yield from reading(ListPaths(path))))
        yield from putting([each for each in puts if each.expected is None or each.path not in there])


def get_tuple(self: Saver, config: Config) -> Steps[base.CheckpointTuple | None]:
    """Read the checkpoint that is named, or the newest."""
    if named := config["configurable"].get("checkpoint_id"):
        [state] = yield ("batch", [GetItem(place(STATES, config, named), KEY)])
        read = yield from complete(self, [state] if state else [])
    else:
        read = yield from page(self, FindItems(place(STATES, config), limit=1))
    return read[0] if read else None


def page(self: Saver, asked: FindItems) -> Steps[list[base.CheckpointTuple]]:
    """Read some checkpoints, the newest first."""
    [found] = yield ("batch", [asked])
    return (yield from complete(self, [each.item for each in found]))


def complete(self: Saver, states: Sequence[Item]) -> Steps[list[base.CheckpointTuple]]:
    """Read the values and the writes of checkpoints, all at once; what moves to another page meanwhile counts once."""
    parts = [to_parts(state) for state in states]
    wanted = list(dict.fromkeys(path for writes, values in parts for path in (writes, *values)))
    found: dict[Path, list[Item]] = {}
    for start in range(0, len(wanted), MOST):
        asked = wanted[start : start + MOST]
        answers = yield ("batch", [FindItems(path, limit=MOST) for path in asked])
        for path, answer in zip(asked, answers, strict=True):
            more = (yield from reading(FindItems(path, offset=MOST))) if len(answer) == MOST else []
            found[path] = list({each.item.path: each.item for each in (*answer, *more)}.values())
    return [join(self.serde, state, found) for state in states]


def thin(thread: str, choose: Callable[[Sequence[Item]], Sequence[Item]]) -> Steps[None]:
    """Drop what a thread holds but the chosen checkpoints, with the writes and values that are theirs."""
    states = yield from reading(FindItems((ROOT, STATES, thread)))
    kept = choose([each.item for each in states])
    needed = {path for state in kept for path in (state.path, to_parts(state)[0], *to_parts(state)[1])}
    for kind, end in ((STATES, None), (WRITES, -3), (VALUES, -1)):
        paths = yield from reading(ListPaths((ROOT, kind, thread)))
        gone = [path for path in paths if path[2] == thread and path[:end] not in needed]
        for start in range(0, len(gone), MOST):
            yield ("batch", [DropItem(path, KEY) for path in gone[start : start + MOST]])


def delete_thread(_: Saver, thread_id: str) -> Steps[None]:
    """Drop all of a thread."""
    yield from thin(thread_id, lambda _: ())


def delete_for_runs(_: Saver, run_ids: Sequence[str]) -> Steps[None]:
    """Drop the checkpoints of some runs, in whichever threads they are."""
    name, threads = f"{METADATA}run_id", set[str]()
    for run in run_ids:
        found = yield from reading(FindItems((ROOT, STATES), {name: run}))
        threads |= {each.item.path[2] for each in found}
    for thread in sorted(threads):
        yield from thin(thread, lambda states: [state for state in states if state.value.get(name) not in run_ids])


def copy_thread(_: Saver, source_thread_id: str, target_thread_id: str) -> Steps[None]:
    """Copy a thread; its checkpoints come last and one by one, so that they keep their order."""
    for kind, size in ((VALUES, 7), (WRITES, 7), (STATES, 1)):
        listed = yield from reading(ListPaths((ROOT, kind, source_thread_id)))
        paths = [path for path in listed if path[2] == source_thread_id]
        for start in range(0, len(paths), size):
            items = yield ("batch", [GetItem(path, KEY) for path in paths[start : start + size]])
            copies = [((ROOT, kind, target_thread_id, *item.path[3:]), item.value) for item in items if item]
            yield from putting(PutItem(path, KEY, value, memory=False) for path, value in copies)


def prune(_: Saver, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> Steps[None]:
    """Drop all checkpoints of some threads, or all but the newest of each level."""
    if strategy not in {"keep_latest", "delete"}:
        raise ValueError("strategy must be keep_latest or delete")
    for thread in thread_ids:
        yield from thin(thread, choose_latest if strategy == "keep_latest" else lambda _: ())


def choose_latest(states: Sequence[Item]) -> Sequence[Item]:
    """Choose the newest checkpoint of each level; all, where a channel is told by what came before alone."""
    if any(state.value.get(f"{METADATA}counters_since_delta_snapshot") for state in states):
        return states
    return list({state.path[:-1]: state for state in reversed(states)}.values())


def pages(
    config: Config | None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - its name
    before: Config | None = None,
    limit: int | None = None,
) -> Iterator[FindItems]:
    """Say page by page what is listed."""
    where: dict[str, Any] = {METADATA + name: {"$eq": value} for name, value in (filter or {}).items()}
    under: Path = (ROOT, STATES)
    named = config["configurable"] if config else {}
    if config:
        under = (*under, str(named["thread_id"])) if named.get("checkpoint_ns") is None else place(STATES, config)
    last = before["configurable"].get("checkpoint_id") if before else None
    if ids := {sign: value for sign, value in (("$eq", named.get("checkpoint_id")), ("$lt", last)) if value}:
        where["id"] = ids
    for offset in range(0, limit, PAGE) if limit is not None else count(0, PAGE):
        yield FindItems(under, where, limit=min(PAGE, (limit or PAGE + offset) - offset), offset=offset)
