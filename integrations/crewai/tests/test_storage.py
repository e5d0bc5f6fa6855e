"""RecollectStorage against CrewAI's LanceDBStorage, operation by operation, and below CrewAI's own Memory."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.memory.analyze import ConsolidationAction, ConsolidationPlan, ExtractedMemories, MemoryAnalysis
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from recollect_crewai import RecollectStorage

from recollect.errors import InvalidInputError

NOON = datetime(2026, 1, 31, 12)  # noqa: DTZ001 - as CrewAI writes them
SCOPES = ("/", "/a", "/a/b", "/c/d/e")
DIMENSIONS = 48


def embed(texts: list[str]) -> list[list[float]]:
    """Embed by words: texts that share some are near to each other."""
    return [embed_one(text) for text in texts]


def embed_one(text: str) -> list[float]:
    vector = [0.01] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        vector[digest[0] % DIMENSIONS] += 1
        vector[digest[1] % DIMENSIONS] += 1
    length = math.hypot(*vector)
    return [number / length for number in vector]


def make(number: int, scope: str = "/", categories=(), metadata=None, content: str = "") -> MemoryRecord:
    text = content or f"record {number} of {uuid4().hex}"
    return MemoryRecord(
        id=f"r{number}",
        content=text,
        scope=scope,
        categories=list(categories),
        metadata=metadata or {},
        importance=number % 11 / 10,
        created_at=NOON + timedelta(seconds=number),
        last_accessed=NOON,
        embedding=embed_one(text),
        source=f"s{number}" if number % 2 else None,
        private=number % 3 == 0,
    )


scopes, prefixes = st.sampled_from(SCOPES), st.sampled_from([None, "/", "/a", "/a/b/", "/c", "/none"])
categories = st.sampled_from([[], ["tea"], ["\u8336"], ["tea", "x y"], ["x y", "\u8336"]])
metadata = st.sampled_from([{}, {"k": "v"}, {"m": 2}, {"k": 2.5, "m": True}, {"k": ["v"]}, {"m": {"n": 1}, "k": "v"}])
some = st.integers(0, 9)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("save"), st.integers(1, 3), scopes, categories, metadata),
        st.tuples(st.just("save"), st.integers(1, 3), scopes, categories, metadata),
        st.tuples(st.just("update"), some, scopes, categories, metadata),
        st.tuples(
            st.just("delete"),
            st.fixed_dictionaries({"record_ids": st.sampled_from([["r0"], ["r1", "r2"], ["r3", "r0", "none"]])}),
        ),
        st.tuples(
            st.just("delete"),
            st.fixed_dictionaries(
                {"categories": categories.filter(bool), "scope_prefix": prefixes},
                optional={"metadata_filter": metadata, "older_than": some.map(lambda n: NOON + timedelta(seconds=n))},
            ),
        ),
        st.tuples(st.just("delete"), st.fixed_dictionaries({"metadata_filter": metadata.filter(bool)})),
        st.tuples(st.just("delete"), some.map(lambda n: {"older_than": NOON + timedelta(seconds=n)})),
        st.tuples(st.just("search"), prefixes, st.none() | categories, metadata),
        st.tuples(st.just("reset"), prefixes),
    ),
    max_size=10,
)


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory


@given(operations=OPERATIONS)
def test_the_same_operations_leave_the_same_records(memory, folder, operations) -> None:
    ours = RecollectStorage(memory.mind("crew", f"o-{uuid4().hex}"))
    theirs = LanceDBStorage(folder.mktemp("lance"), vector_dim=DIMENSIONS, compact_every=0)
    count = 0
    for name, *given_arguments in operations:
        arguments = given_arguments
        if name == "save":
            arguments = [[make(count + number, *given_arguments[1:]) for number in range(given_arguments[0])]]
            count += given_arguments[0]
        elif name == "update":
            arguments = [make(*given_arguments)]
            count = max(count, given_arguments[0] + 1)
        results = [apply(storage, name, arguments) for storage in (ours, theirs)]
        assert results[0] == results[1], name
        assert [plain(record) for record in ours.list_records()] == [plain(record) for record in theirs.list_records()]
    assert look(ours) == look(theirs)


def apply(storage, name: str, arguments):
    if name == "delete":
        return storage.delete(**arguments[0])
    if name != "search":
        return getattr(storage, name)(*arguments)
    found = storage.search(embed_one("record"), *arguments, limit=100)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    return sorted(plain(record) for record, _ in found)


def look(storage):
    """Read everything."""
    every = [None, "/", "/a", "/a/b", "/c", "/none"]
    return (
        [plain(record) for record in storage.list_records()],
        [plain(record) for record in storage.list_records("/a", 2, 1)],
        [storage.count(scope) for scope in every],
        [sorted(storage.list_categories(scope).items()) for scope in every],
        [storage.list_scopes(scope) for scope in every[1:]],
        [storage.get_scope_info(scope) for scope in every[1:]],
        [storage.get_record(f"r{number}") and plain(storage.get_record(f"r{number}")) for number in range(3)],
    )


def plain(record: MemoryRecord) -> str:
    return record.model_dump_json()


def test_it_is_a_storage_as_crewai_knows_them(mind) -> None:
    assert isinstance(RecollectStorage(mind), StorageBackend)


def test_the_nearest_come_first_with_their_cosine(mind) -> None:
    storage = RecollectStorage(mind)
    texts = ["green tea in the morning", "green tea", "rain in Rome"]
    storage.save([make(number, f"/t{number}", content=text) for number, text in enumerate(texts)])
    found = storage.search(embed_one("green tea"), limit=2)
    assert [record.content for record, _ in found] == [texts[1], texts[0]]
    assert found[0][1] == pytest.approx(1, abs=1e-5)
    assert storage.search(embed_one("green tea"), min_score=0.99) == found[:1]
    assert [record.content for record, _ in storage.search(embed_one("green tea"), "/t2")] == [texts[2]]
    assert storage.search([], limit=3) == storage.search([0.0] * DIMENSIONS) == storage.search([1.0, 0.0]) == []


def test_an_update_without_a_vector_keeps_the_one_it_had(mind) -> None:
    storage = RecollectStorage(mind)
    storage.save([make(1, "/a", content="green tea")])
    stored = storage.get_record("r1")
    assert stored.embedding == pytest.approx(embed_one("green tea"), abs=1e-6)
    storage.update(stored.model_copy(update={"scope": "/b", "embedding": None}))
    assert storage.count("/a") == 0
    assert [record.scope for record, _ in storage.search(embed_one("green tea"))] == ["/b"]


def test_records_are_memories_and_what_is_forgotten_is_gone(mind) -> None:
    storage = RecollectStorage(mind)
    storage.save([make(1, "/a", content="Li is allergic to peanuts."), make(2, "/a", content="It rains \x00 in Rome.")])
    hit = mind.recall("Which allergies are there?", limit=1).hits[0]
    assert hit.memory.content == "Li is allergic to peanuts."
    mind.forget([hit.memory.id])
    assert storage.get_record("r1") is None
    assert [record.id for record in storage.list_records()] == ["r2"]
    assert storage.get_record("r2").content == "It rains \x00 in Rome."
    storage.save([make(1, "/b")])
    assert storage.get_record("r1").scope == "/b"
    storage.reset()
    assert mind.recall("Rome").hits == ()


def test_many_records_and_odd_texts_come_back(mind) -> None:
    storage = RecollectStorage(mind)
    odd = {"m\x00": ["\ud800", {"\x00": "\x00"}], "big": 1e300}
    texts = ["long " * (9_000 if number == 7 else 9) for number in range(65)]
    records = [make(number, "/deep/a/b/c/d/e/f/g", ["a\x00"], odd, text) for number, text in enumerate(texts)]
    storage.save(records)
    assert storage.count() == 65
    assert storage.get_record("r7").metadata == odd
    assert storage.get_record("r7").content == records[7].content
    assert len(storage.search(embed_one("long"), None, ["a\x00"], {"big": 1e300}, limit=100)) == 65
    assert storage.delete(categories=["a\x00"]) == 65


def test_long_records_are_divided_by_their_bytes(mind) -> None:
    storage = RecollectStorage(mind)
    long = [make(number, "/long", content="a" * 900_000) for number in range(9)]
    storage.save([*long, make(9, "/long", content="\u957f" * 180_000)])
    assert storage.get_record("r8").content == long[8].content
    assert storage.get_record("r9").content == "\u957f" * 180_000
    assert storage.count("/long") == 10


def test_a_record_that_no_item_can_hold_is_refused_before_any_is_written(mind) -> None:
    storage = RecollectStorage(mind)
    records = [make(number) for number in range(40)]
    with pytest.raises(InvalidInputError, match=r"record r40 has \d+ bytes of JSON, over 1000000: save it in parts"):
        storage.save([*records, make(40, content="a" * 1_000_000)])
    assert storage.count() == 0


def test_a_star_is_a_scope_like_any_other(mind) -> None:
    storage = RecollectStorage(mind)
    storage.save([make(1, "/a/x"), make(2, "/b/y")])
    assert storage.list_scopes("/*") == storage.get_scope_info("/*").child_scopes == []
    storage.save([make(3, "/*/z")])
    assert storage.list_scopes("/*") == ["/*/z"]
    assert storage.count("/*") == storage.delete("/*") == 1
    assert storage.list_scopes() == ["/a", "/b"]


def test_writers_at_the_same_time_leave_one_record_of_each_id(mind) -> None:
    storage = RecollectStorage(mind)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: storage.update(make(1, f"/s{number}")), range(12)))
    assert storage.count() == 1
    assert [record.id for record in storage.list_records(storage.get_record("r1").scope)] == ["r1"]


async def test_the_asynchronous_methods_do_the_same(mind) -> None:
    storage = RecollectStorage(mind)
    await asyncio.gather(*(storage.asave([make(number, "/a", ["c"])]) for number in range(4)))
    assert len(await storage.asearch(embed_one("record"), "/a", limit=3)) == 3
    assert await storage.adelete(categories=["c"]) == 4


class Scripted(BaseLLM):
    """A model that says what the test wrote down for each kind of question."""

    answers: dict = Field(default_factory=dict)

    def call(self, messages, *args, response_model=None, **kwargs):
        answer = self.answers[response_model]
        return answer(messages) if callable(answer) else answer

    def supports_function_calling(self) -> bool:
        return True


def test_crewais_memory_remembers_consolidates_and_recalls(mind) -> None:
    storage = RecollectStorage(mind)
    analysis = MemoryAnalysis(suggested_scope="/team/diet", categories=["food"], importance=0.9)

    def consolidate(_):
        [old] = storage.list_records()
        action = ConsolidationAction(
            action="update", record_id=old.id, new_content="Li is allergic to peanuts and to all other nuts."
        )
        return ConsolidationPlan(actions=[action], insert_new=False)

    llm = Scripted(model="scripted", answers={MemoryAnalysis: analysis, ConsolidationPlan: consolidate})
    memory = Memory(storage=storage, llm=llm, embedder=embed, consolidation_threshold=0.6)
    memory.remember("Li is allergic to peanuts.")
    assert [(record.scope, record.categories) for record in storage.list_records()] == [("/team/diet", ["food"])]
    memory.remember("Li is allergic to peanuts and nuts.")
    [record] = storage.list_records()
    assert record.content.endswith("all other nuts.")
    memory.remember("The office is in Rome.", scope="/team", categories=["place"], importance=0.1, metadata={"n": 1})
    [match, *_] = memory.recall("Who is allergic to peanuts?", depth="shallow", limit=1)
    assert match.record.id == record.id
    assert [each.record.content for each in memory.recall("office", categories=["place"], depth="shallow")] == [
        "The office is in Rome."
    ]
    moved = memory.update(record.id, scope="/team/health")
    assert moved.embedding
    assert memory.list_scopes("/team") == ["/team/health"]
    assert memory.recall("allergic to nuts", scope="/team/health", depth="shallow")
    assert memory.forget(categories=["place"]) == 1
    memory.reset()
    assert storage.count() == 0
    memory.close()


def test_a_crew_leaves_what_it_learned_for_the_next_one(mind) -> None:
    learned = "Li must not eat peanuts."
    llm = Scripted(
        model="scripted",
        answers={
            None: "Thought: I now can give a great answer\nFinal Answer: Curry without peanuts.",
            ExtractedMemories: ExtractedMemories(memories=[learned]),
            MemoryAnalysis: MemoryAnalysis(suggested_scope="/diet", categories=["food"]),
            ConsolidationPlan: ConsolidationPlan(),
        },
    )
    memory = Memory(storage=RecollectStorage(mind), llm=llm, embedder=embed)
    cook = Agent(role="cook", goal="cook", backstory="A cook.", llm=llm)
    task = Task(description="Cook for Li, who must not eat peanuts.", expected_output="A dish.", agent=cook)
    crew = Crew(agents=[cook], tasks=[task], memory=memory, tracing=False)
    assert "peanuts" in crew.kickoff().raw
    memory.drain_writes()
    stored = RecollectStorage(mind).list_records()
    assert learned in [record.content for record in stored]
    assert mind.recall("What must Li not eat?", limit=1).hits[0].memory.content == learned
    memory.close()
