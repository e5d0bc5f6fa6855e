"""One facade three times: in the process, over HTTP and blocking; none of them has a method that another lacks."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import pytest

from recollect import sync
from recollect.client import Client, RemoteMind
from recollect.client.operations import OPERATIONS as REMOTE_OPERATIONS
from recollect.mind import Mind
from recollect.mind.mind import OPERATIONS
from recollect.mind.operations import CONVERSATION
from recollect.sync.blocking import SyncMind

TOOL = Path(__file__).parents[3] / "tools" / "clients.py"


@pytest.fixture(scope="module")
def tool():
    """Give the script that writes the clients."""
    spec = importlib.util.spec_from_file_location("clients", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def members(owner: type) -> dict[str, object]:
    """Give the public methods and properties of a class, inherited ones too."""
    everything = inspect.getmembers_static(owner, lambda each: inspect.isfunction(each) or isinstance(each, property))
    return {name: each for name, each in everything if not name.startswith("_") and name != "call"}


def views(mind: type) -> dict[str, type]:
    """Give a mind, and the classes of its parts by the ways to them."""
    ways = {name: each for name, each in members(mind).items() if isinstance(each, property) or name == CONVERSATION}
    found = {name: getattr(each, "fget", each) for name, each in ways.items()}
    return {"": mind} | {name: inspect.get_annotations(each, eval_str=True)["return"] for name, each in found.items()}


FACADES = [views(kind) for kind in (Mind, RemoteMind, SyncMind)]
PAIRS = [
    *((local, other[name]) for name, local in FACADES[0].items() for other in FACADES[1:]),
    (Client, sync.SyncClient),
]
DIFFERENT = {
    # The way to the server itself, for the classes of the client alone.
    (Client, sync.SyncClient): {"pause", "send", "send_once", "stream"},
}
"""What one of a pair has and the other does not need, by pair, each with its reason."""


def describe(member: object) -> object:
    """Say how a member is used: a property is read, anything else is called with these parameters."""
    return "property" if isinstance(member, property) else list(inspect.signature(member).parameters.values())


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda facade: facade.__name__)
def test_both_of_a_pair_have_the_same_methods_with_the_same_parameters(one, other):
    mine, theirs, different = members(one), members(other), DIFFERENT.get((one, other), set())
    assert mine.keys() ^ theirs.keys() == different
    for name in mine.keys() & theirs.keys():
        assert describe(mine[name]) == describe(theirs[name]), name
        assert asks_for(mine[name]) == asks_for(theirs[name]), name


def asks_for(member: object) -> str:
    """Say what a verb gives back; whoever leads to another facade leads to the one of its own kind."""
    if isinstance(member, property) or member.__name__ in {"conversation", "mind", "export", "changes"}:
        return ""
    return str(inspect.signature(member).return_annotation)


def test_every_method_of_a_mind_is_an_operation():
    """Beside those that are made of operations: a way of the items, or a reflection that is waited for."""
    made_of_others = {"reflect", "items.put", "items.get", "items.drop", "items.find", "items.paths"}
    called = {
        f"{name}.{each}".lstrip(".")
        for name, view in FACADES[0].items()
        for each, member in members(view).items()
        if not isinstance(member, property) and each != CONVERSATION
    }
    assert called - made_of_others == OPERATIONS.keys() == REMOTE_OPERATIONS.keys()


def test_operations_differ_in_how_they_are_asked_for():
    asked = [(operation.method, operation.path) for operation, _ in OPERATIONS.values()]
    assert len(set(asked)) == len(asked)
    assert all(operation.help and operation.right for operation, _ in OPERATIONS.values())


def test_the_clients_are_as_the_list_of_operations_makes_them(tool):
    assert [path.name for path, text in tool.write_all().items() if path.read_text(encoding="utf-8") != text] == []


def test_a_method_that_a_client_lacks_is_noticed(tool, monkeypatch):
    texts = {
        path: text.replace("    forget = blocking(RemoteMind.forget)\n", "") for path, text in tool.write_all().items()
    }
    monkeypatch.setattr(tool, "write_all", lambda: texts)
    monkeypatch.setattr("sys.argv", ["clients.py", "--check"])
    with pytest.raises(SystemExit, match=r"sync/blocking\.py"):
        tool.main()
