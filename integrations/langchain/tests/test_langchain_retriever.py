"""The retriever recalls: LangChain's own suite, and what a document says of the memory."""

from __future__ import annotations

import os
from uuid import UUID, uuid4

import pytest
from langchain_core.documents import Document
from langchain_tests.integration_tests import RetrieversIntegrationTests
from recollect_langchain import Connection, RecollectRetriever

from recollect.models import Cue, Kind, NewMemory

FACTS = [
    NewMemory("Li drinks green tea in the morning", speaker="li", metadata={"source": "talk"}),
    NewMemory("Li keeps tea in a tin box"),
    NewMemory("The teapot of Li is made of iron", kind=Kind.THOUGHT),
    NewMemory("Tea from Hangzhou is Li's favourite"),
]


@pytest.fixture(scope="module")
def remembering():
    if "RECOLLECT_URL" not in os.environ:
        pytest.skip("RECOLLECT_URL names no server")
    connection = Connection(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"], "retriever", uuid4().hex)
    connection.mind.remember(FACTS)
    yield connection
    connection.close()


class TestStandard(RetrieversIntegrationTests):
    """LangChain's suite for retrievers."""

    @pytest.fixture(autouse=True)
    def _connect(self, remembering):
        type(self).connection = remembering

    @property
    def retriever_constructor(self):
        return RecollectRetriever

    @property
    def retriever_constructor_params(self):
        return {"connection": self.connection}

    @property
    def retriever_query_example(self):
        return "Which tea does Li drink?"


def test_a_document_says_what_it_is_and_why(remembering):
    [document] = RecollectRetriever(connection=remembering, k=1).invoke("green tea in the morning")
    assert isinstance(document, Document)
    assert document.page_content == FACTS[0].content
    memory = remembering.mind.get(UUID(document.id))
    assert (document.metadata["kind"], document.metadata["speaker"]) == ("event", "li")
    assert document.metadata["source"] == "talk"
    assert document.metadata["occurred_at"] == memory.occurred_at.isoformat()
    assert document.metadata["score"] == pytest.approx(sum(document.metadata["shares"].values()), abs=0.01)


async def test_a_cue_says_the_rest(remembering):
    retriever = RecollectRetriever(connection=remembering, cue=Cue(kinds=(Kind.THOUGHT,)))
    assert [document.page_content for document in await retriever.ainvoke("tea")] == [FACTS[2].content]


def test_another_tenant_recalls_nothing(remembering, open_connection):
    assert RecollectRetriever(connection=open_connection("RECOLLECT_OTHER_KEY")).invoke("tea") == []
