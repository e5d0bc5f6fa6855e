"""What the database walks and fits is what the pure rules say, over random trees of turns and an independent count."""

from __future__ import annotations

import hashlib
import lzma
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
import tiktoken

import recollect
from recollect.core.conversations.budget import fit
from recollect.core.conversations.messages import count_tokens
from recollect.core.conversations.threads import NIL, ThreadNode, walk
from recollect.core.text.tokens import ESTIMATE, estimate
from recollect.llm.tokens.count import Estimate
from recollect.models.conversations import (
    LEGACY,
    Attachment,
    HistoryOptions,
    Message,
    MessageReceipt,
    MessageStatus,
    NewMessage,
    OversizedTurn,
    Part,
    PartType,
)
from recollect.models.memories import Role
from support.measuring.sizes import Sizes

TREES = Sizes("trees", ci=30, long=1_000)
CUT = Sizes("trees", ci=12, long=200)
HISTORIES = 5
"""So many windows onto each tree."""
URL = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
WORDS = (
    "apple",
    "tree",
    "déjà vu",
    "花生过敏",
    "[image]",
    "```",
    "<|endoftext|>",
    "👩‍👩‍👧",
    "12345678",
    "select 1;",
    "a\n\nb",
)
IMAGE_TOKENS = 765


@dataclass(frozen=True)
class Tree:
    """A conversation as it was appended, and as the rules see it."""

    name: str
    new: list[NewMessage]
    appended: list[MessageReceipt]
    nodes: list[ThreadNode]
    """Oldest first, by position in the call."""

    def path(self, leaf: int | None) -> list[int]:
        """Give the positions from a leaf to its root, by the pure walk over the whole tree."""
        newest = len(self.nodes) - 1 if leaf is None else leaf
        return [int(each) for each in walk(self.nodes[::-1], str(newest))]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """OpenAI's own encodings as tiktoken defines them, from a cache, because nothing here may ask the network."""
    cache = tmp_path_factory.mktemp("tiktoken")
    for name in ("o200k_base", "cl100k_base"):
        packed = Path(recollect.__file__).parent / "llm" / "tokens" / "vocabularies" / f"{name}.tiktoken.xz"
        place = cache / hashlib.sha1(URL.format(name=name).encode()).hexdigest()
        place.write_bytes(lzma.decompress(packed.read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
        return {name: tiktoken.get_encoding(name) for name in ("o200k_base", "cl100k_base")}


def draw_tree(chance):
    """Draw a tree: turns with tools and images, branches, second answers, roots, and what is from before branches."""
    new, nodes, unbranched = [], [], None
    for position in range(chance.randint(1, 30)):
        role = chance.choices(list(Role), [10, 10, 1, 2])[0]
        parent, root = draw_parent(chance, position)
        message = draw_message(chance, role, parent, root=root)
        follows = None if root or not position else position - 1 if parent is None else parent
        legacy = parent == LEGACY
        if not legacy and follows is not None and follows == unbranched and role in {Role.ASSISTANT, Role.TOOL}:
            legacy = True
        unbranched = position if legacy else unbranched
        new.append(message)
        nodes.append(ThreadNode(str(position), NIL if legacy else None if follows is None else str(follows)))
    return new, nodes


def draw_parent(chance, position):
    kind = chance.choices(["next", "branch", "root", "legacy"], [12, 4, 1, 3])[0]
    if kind == "branch" and position:
        return chance.randrange(position), False
    return (LEGACY if kind == "legacy" else None), kind == "root"


def draw_text(chance):
    return " ".join(chance.choices(WORDS, k=chance.choice([1, 2, 5, 40])))


def draw_message(chance, role, parent, *, root):
    parts, attachments, content = [], [], draw_text(chance)
    if role is Role.USER and chance.random() < 0.2:
        parts = [Part(PartType.IMAGE, url="https://example.org/a.png")] * chance.randint(1, 60)
        attachments = [Attachment("image", url="https://example.org/b.png"), Attachment("document", name="a.pdf")]
    if role is Role.ASSISTANT:
        content = chance.choice([content, content, ""])
        if chance.random() < 0.2:
            parts = [Part(PartType.TOOL_CALL, '{"city": "Leuven"}', "weather", call_id="c1")]
    if role is Role.TOOL:
        content, parts = "", [Part(PartType.TOOL_RESULT, content, call_id="c1")]
    status = chance.choices(list(MessageStatus), [6, 1, 1])[0] if role is Role.ASSISTANT else MessageStatus.DONE
    name = "Ada" if chance.random() < 0.2 else ""
    return NewMessage(role, content, name, tuple(parts), tuple(attachments), parent=parent, root=root, status=status)


def draw_window(chance, tree):
    leaf = chance.choice([None, chance.randrange(len(tree.new))])
    tokenizer = chance.choice(["", "gpt-4o", "gpt-4", "cl100k_base", ESTIMATE, "llama-3-8b"])
    costs = [each.tokens for each in tree.appended]
    budget = chance.choice([0, 1, sum(costs), sum(costs[: chance.randrange(len(costs)) + 1]), 10_000_000])
    window = HistoryOptions(
        max(0, budget + chance.choice([-1, 0, 1])) if budget < 10_000_000 else budget,
        leaf=None if leaf is None else tree.appended[leaf].id,
        tokenizer=tokenizer,
        unanswered=chance.random() < 0.4,
        images=chance.random() < 0.3,
        image_tokens=chance.choice([0, IMAGE_TOKENS, 100_000]),
    )
    return leaf, window


def price(message, tokenizer, published):
    """Count a message by tiktoken itself, or by the estimate."""
    if tokenizer == ESTIMATE:
        return count_tokens(message, estimate, Estimate.frame, Estimate.naming)
    return count_tokens(message, lambda text: len(published[tokenizer].encode_ordinary(text)), 4, 1)


def as_stored(tree, positions, tokenizer, published):
    """Make the messages of a path as a reader should see them, newest first."""
    turns: dict[int, UUID] = {}
    for position in reversed(positions):
        place = positions.index(position)
        begins = tree.new[position].role in {Role.USER, Role.SYSTEM} or place + 1 == len(positions)
        turns[position] = tree.appended[position].id if begins else turns[positions[place + 1]]
    messages = []
    for position in positions:
        new, appended = tree.new[position], tree.appended[position]
        content = new.content or "\n".join(filter(None, (show(part) for part in new.parts)))
        messages.append(
            Message(
                appended.id,
                new.role,
                content,
                new.name,
                new.parts,
                new.attachments,
                appended.parent,
                turns[position],
                appended.number,
                new.status,
                price(new, tokenizer, published),
                datetime(2026, 1, 1, tzinfo=UTC),
                "",
            )
        )
    return messages


def show(part):
    shown = {PartType.IMAGE: "[image]", PartType.TOOL_CALL: f"[tool call {part.name} {part.text}]"}
    return shown.get(part.type, part.text)


def count_prompt(prompt, encoding, image_tokens):
    """Count as OpenAI's cookbook does, three tokens a message and one a name; a tool call as the text it stands for."""

    def count(text):
        return len(encoding.encode(text, disallowed_special=()))

    total = 0
    for message in prompt:
        total += 3 + count(message["role"]) + (1 + count(message["name"]) if "name" in message else 0)
        calls = [f"[tool call {call['function']['name']} {call['function']['arguments']}]"
                 for call in message.get("tool_calls", ())]  # fmt: skip
        content = message["content"]
        if isinstance(content, list):
            total += sum(image_tokens for part in content if part["type"] == "image_url")
            content = "\n".join(part["text"] for part in content if part["type"] == "text")
        total += count("\n".join(filter(None, [content, *calls])))
    return total


async def grow(mind, seed):
    """Append a random tree, in one call or in two that know each other's ids."""
    chance = random.Random(seed)
    new, nodes = draw_tree(chance)
    conversation = mind.conversation(f"tree-{seed}")
    cut = chance.randrange(len(new)) if chance.random() < 0.5 else 0
    appended = await conversation.append(new[:cut]) if cut else []
    rest = [
        message if not isinstance(message.parent, int)
        else rename(message, appended[message.parent].id if message.parent < cut else message.parent - cut)
        for message in new[cut:]
    ]  # fmt: skip
    return Tree(conversation.conversation, new, appended + await conversation.append(rest), nodes)


def rename(message, parent):
    return NewMessage(**{name: getattr(message, name) for name in message.__slots__} | {"parent": parent})


@pytest.mark.promise("A history in the database is what the pure rules choose of the whole tree, counted right", TREES)
async def test_history_is_what_the_pure_rules_choose_of_the_whole_tree(mind, owner, published, figure):
    tally = {"histories": 0, "messages": 0, "shortened": 0, "unshown": 0}
    for seed in range(TREES.now):
        tree = await grow(mind, seed)
        chance = random.Random(-seed)
        for _ in range(HISTORIES):
            leaf, window = draw_window(chance, tree)
            history = await mind.conversation(tree.name).history(window)
            assert_twin(tree, leaf, window, history, published)
            tally["histories"] += 1
            tally["messages"] += len(history.messages)
            tally["shortened"] += not history.complete
            tally["unshown"] += not history.messages
    assert_recounted(owner, published)
    figure(f"{tally['histories']} histories of {tally['messages']} messages, {tally['shortened']} of them shortened")
    assert tally["shortened"] > tally["unshown"]
    assert tally["messages"] > 2 * tally["histories"]


def assert_twin(tree, leaf, window, history, published):
    names = {"": "o200k_base", "gpt-4o": "o200k_base", "gpt-4": "cl100k_base", "llama-3-8b": ESTIMATE}
    tokenizer = names.get(window.tokenizer, window.tokenizer)
    path = as_stored(tree, tree.path(leaf), tokenizer, published)
    image_tokens = window.image_tokens if window.images else 0
    fitted = fit(path, window.max_tokens, unanswered=window.unanswered, image_tokens=image_tokens)
    seen = (tree.name, leaf, window)
    assert [strip(each) for each in history.messages] == [strip(each) for each in fitted.messages], seen
    assert (history.tokens, history.tokenizer, history.exact) == (fitted.tokens, tokenizer, tokenizer != "estimate"), (
        seen
    )
    assert history.complete == (bool(fitted.messages) and fitted.messages[0].id == path[-1].id), seen
    assert_whole_turns(history, path, seen)
    if tokenizer != ESTIMATE:
        counted = count_prompt(history.prompt, published[tokenizer], image_tokens)
        # An image that is handed on costs its own tokens instead of the text that stands for it.
        assert counted <= history.tokens if window.images else counted == history.tokens, seen
        turns = {message.turn for message in history.messages}
        assert counted <= window.max_tokens or len(turns) == 1 or is_headless(history), seen


def strip(message):
    fields = ("id", "role", "content", "name", "parts", "attachments", "parent", "turn", "number", "status", "tokens")
    return {name: getattr(message, name) for name in fields}


def assert_whole_turns(history, path, seen):
    """It is a piece of one path in order, from the beginning of a turn to the end of one."""
    ids = [message.id for message in history.messages]
    whole = [message.id for message in reversed(path)]
    if ids:
        start = whole.index(ids[0])
        assert whole[start : start + len(ids)] == ids, seen
        assert history.messages[0].turn == ids[0], seen
        behind = path[: len(path) - start - len(ids)]
        assert not behind or behind[-1].turn != history.messages[-1].turn, seen


def is_headless(history):
    """A first turn that is too long takes what follows it along, where that has lost its own beginning."""
    return all(message.turn != message.id for message in history.messages[1:] if message.role is Role.USER)


def assert_recounted(owner, published):
    """What is stored as a message's cost is what counting it again gives."""
    found = owner.execute(
        "select tokens, role, content, speaker, coalesce(parts, '[]'), coalesce(attachments, '[]') "
        "from messages join memories using (scope_id, id) order by random() limit 400"
    ).fetchall()
    for tokens, role, content, speaker, parts, attachments in found:
        message = NewMessage(
            Role(role),
            content,
            speaker,
            tuple(Part(**{**part, "type": PartType(part["type"])}) for part in parts),
            tuple(Attachment(**attachment) for attachment in attachments),
        )
        assert tokens == {name: price(message, name, published) for name in tokens}
        assert set(tokens) == {"o200k_base", "cl100k_base", ESTIMATE}


@pytest.mark.promise("A turn that is too long is cut so that it fits, whatever the tree", CUT)
async def test_a_turn_that_is_cut_fits_whatever_the_tree(mind, published):
    cuts = 0
    for seed in range(1_000_000, 1_000_000 + CUT.now):
        tree = await grow(mind, seed)
        for budget in (0, 7, 30, 200):
            window = HistoryOptions(budget, oversized=OversizedTurn.CUT)
            history = await mind.conversation(tree.name).history(window)
            counted = count_prompt(history.prompt, published["o200k_base"], 0)
            assert counted == history.tokens <= budget, (seed, window)
            path = as_stored(tree, tree.path(None), "o200k_base", published)
            fitted = fit(path, budget, unanswered=False)
            expected = [message.id for message in fitted.messages]
            assert [message.id for message in history.messages] in ([], expected), (seed, window)
            cuts += history.cut and bool(history.messages)
    assert cuts > 0
