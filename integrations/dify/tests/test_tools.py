"""Every tool over the daemon's protocol, in the real SDK, against a real server."""

from __future__ import annotations

import dataclasses
import json
import threading
import uuid
from collections import Counter

import pytest
import yaml
from daemon import PLUGIN, Dify, embedding

from recollect.models import Filter

TOOLS = ("remember", "append", "recall", "history", "context", "associate", "forget")


def schema(tool):
    declared = yaml.safe_load((PLUGIN / "tools" / f"{tool}.yaml").read_text(encoding="utf-8"))
    return declared["output_schema"]["properties"]


def check(tool, reply):
    """What a tool gives is what its schema promises, by name and by type."""
    assert reply.error is None, reply.error
    assert reply.text
    declared = schema(tool)
    assert reply.variables.keys() == declared.keys()
    kinds = {"string": str, "array": list, "number": int | float, "boolean": bool}
    for name, value in reply.variables.items():
        assert isinstance(value, kinds[declared[name]["type"]]), name
        for each in value if isinstance(value, list) else ():
            inner = declared[name]["items"]
            if inner["type"] == "string":
                assert isinstance(each, str)
            else:
                assert each.keys() == inner["properties"].keys()
                assert all(isinstance(each[part], kinds[of["type"]]) for part, of in inner["properties"].items())
    return reply


def test_what_is_remembered_is_recalled_and_forgotten(dify):
    stored = check("remember", dify.use("remember", content="Li drinks oolong tea every morning", importance=7))
    check("remember", dify.use("remember", content="Klaus researches gentrification", importance="4"))
    found = check("recall", dify.use("recall", cue="What does Li like to drink?", limit=1))
    (hit,) = found.variables["hits"]
    assert (hit["content"], hit["importance"], hit["kind"]) == ("Li drinks oolong tea every morning", 7, "event")
    assert found.variables["ids"] == [hit["id"]] == stored.variables["ids"]
    assert hit["id"] in found.text and hit["content"] in found.text
    assert hit["score"] > 0
    gone = check("forget", dify.use("forget", ids=hit["id"]))
    assert gone.variables["ids"] == [hit["id"]]
    left = check("recall", dify.use("recall", cue="What does Li like to drink?"))
    assert hit["id"] not in left.variables["ids"]


def test_a_filter_is_the_same_at_every_tool(dify):
    fields = {each.name for each in dataclasses.fields(Filter)}
    for tool, other in (("recall", set()), ("context", set()), ("forget", {"topics_only"})):
        declared = yaml.safe_load((PLUGIN / "tools" / f"{tool}.yaml").read_text(encoding="utf-8"))
        assert fields - other <= {each["name"] for each in declared["parameters"]}, tool
    for content, importance, topic in (("green tea", 9, "food->tea"), ("black tea", 2, "food"), ("tea time", 5, "")):
        dify.use("remember", content=content, importance=importance, topic=topic)

    def recall(**only):
        return {each["content"] for each in check("recall", dify.use("recall", **only)).variables["hits"]}

    assert recall(cue="tea", min_importance=5) == recall(min_importance="5") == {"green tea", "tea time"}
    assert recall(cue="tea", topics="food", below=True, topics_only=True) == {"green tea", "black tea"}
    assert recall(since="2900-01-01T00:00:00Z") == recall(state="faded") == recall(pinned="true") == set()
    assert recall(where='["size exists false", "tags exists false"]', until="2900-01-01T00:00:00Z", pinned="false")
    shown = check("forget", dify.use("forget", topics="food", below=True, dry_run=True))
    assert (len(shown.variables["ids"]), shown.text) == (2, "Would forget 2 memories.")
    assert len(check("forget", dify.use("forget", topics="food", below=True)).variables["ids"]) == 2
    assert recall(cue="tea") == {"tea time"}


def test_nothing_remembered_is_no_error(dify):
    nothing = check("recall", dify.use("recall", cue="tea"))
    assert nothing.variables == {"status": "no_candidates", "hits": [], "ids": []}
    assert nothing.text == "No memories found."
    assert check("history", dify.use("history")).variables["messages"] == []
    made = check("context", dify.use("context", cue="tea"))
    assert (made.variables["block"], made.variables["messages"]) == ("", [{"role": "user", "content": "tea"}])
    assert check("forget", dify.use("forget", ids=str(uuid.uuid4()))).variables["ids"] == []


def test_a_turn_is_appended_and_read_back_as_messages(dify):
    turn = {"user_message": "停车方便吗？", "assistant_message": "停车场在孤山路。"}
    appended = check("append", dify.use("append", **turn))
    history = check("history", dify.use("history", max_tokens=500))
    assert history.variables["messages"] == [
        {"role": "user", "content": "停车方便吗？"},
        {"role": "assistant", "content": "停车场在孤山路。"},
    ]
    assert history.variables["ids"] == appended.variables["ids"]
    assert history.variables["complete"] is True
    assert 0 < history.variables["tokens"] < 60
    assert "停车场在孤山路。" in history.text


def test_a_context_is_one_prompt(dify):
    dify.use("remember", content="Li is allergic to peanuts")
    dify.use("append", user_message="Hello", assistant_message="Hello, Li.")
    made = check("context", dify.use("context", cue="What may Li not eat: peanuts?", budget=600, system="Be kind."))
    roles = [message["role"] for message in made.variables["messages"]]
    assert roles[0] == "system" and roles[-1] == "user"
    assert made.variables["messages"][0]["content"].startswith("Be kind.")
    assert made.variables["messages"][-1]["content"] == "What may Li not eat: peanuts?"
    assert "allergic to peanuts" in made.variables["block"] == made.text
    assert "Hello, Li." in made.variables["history"]
    assert len(made.variables["ids"]) >= 1
    assert made.variables["tokens"] <= 600


def test_a_triple_reminds_of_events_and_thoughts(dify, memory):
    dify.use("remember", content="Klaus is reading about gentrification", keywords="klaus, gentrification")
    dify.use("remember", content="Maria makes tea", keywords='["maria", "tea"]')
    found = check("associate", dify.use("associate", subject="Klaus", predicate="reads", object="gentrification"))
    assert [each["content"] for each in found.variables["events"]] == ["Klaus is reading about gentrification"]
    assert found.variables["thoughts"] == []
    assert found.variables["ids"] == [found.variables["events"][0]["id"]]


def test_lists_come_as_they_are_written_in_workflows(dify):
    made = [dify.use("remember", content=f"Note {number}").variables["ids"][0] for number in range(5)]
    assert dify.use("forget", ids=f"{made[0]}, {made[1]}").variables["ids"] == made[:2]
    assert dify.use("forget", ids=f'["{made[2]}", "{made[3]}"]').variables["ids"] == made[2:4]
    assert dify.use("forget", ids=[made[4]]).variables["ids"] == made[4:]
    dify.use("append", user_message="Note this", assistant_message="Noted")
    dify.use("remember", content="Note that")
    found = dify.use("recall", cue="note", kinds="message, thought").variables["hits"]
    assert {hit["kind"] for hit in found} == {"message"}


LISTS = {
    '["tea, green", "coffee"]': ["tea, green", "coffee"],
    ' \n["klaus"]': ["klaus"],
    json.dumps(["停车", "孤山路，杭州"]): ["停车", "孤山路，杭州"],
    '["停车", "茶"]': ["停车", "茶"],
    '["[draft]", "it\'s", "\\"so\\""]': ["[draft]", "it's", '"so"'],
    "[]": [],
    " [ ] ": [],
    '["", " ", null, "tea"]': ["tea"],
    "[2024, 0.50]": ["2024", "0.50"],
    "": [],
    " , ,": [],
    "tea, , coffee,": ["tea", "coffee"],
    "停车": ["停车"],
    "[tea, coffee]": ["tea", "coffee"],
    "['tea', 'coffee']": ["tea", "coffee"],
    '"tea", "coffee"': ["tea", "coffee"],
    '["tea", "coffee': ["tea", "coffee"],
    "[" * 100_000: [],
}


def test_a_list_is_read_as_json_or_as_words_between_commas(workbench):
    program = "from memory_tool import read; made = [read('keywords', text) for text in given]"
    assert dict(zip(LISTS, workbench.run(program, list(LISTS)), strict=True)) == LISTS


@pytest.mark.parametrize("written", [json.dumps(["孤山路, 杭州", "茶"]), '["孤山路, 杭州", "", "茶"]'])
def test_chinese_json_arrives_as_the_words_it_says(written, dify, memory):
    dify.use("remember", content="停车场在孤山路。", keywords=written)
    (stored,) = memory.mind(dify.app, dify.user).list().memories
    assert sorted(stored.keywords) == sorted(["孤山路, 杭州", "茶"])
    assert dify.use("remember", content="Tea", keywords="[]").error is None
    assert len(dify.use("recall", cue="Tea", kinds="[]").variables["hits"]) == 2


def test_what_was_left_empty_is_as_if_it_were_not_there(dify):
    empty = {"importance": None, "occurred_at": "", "speaker": "", "topic": "", "agent": "", "user": None}
    check("remember", dify.use("remember", content="Tea", embedding_model=None, **empty))
    assert len(dify.use("recall", cue="Tea", limit=None, kinds="", embedding_model={}).variables["hits"]) == 1


def test_moments_and_topics_arrive(dify):
    dify.use("remember", content="Li came", occurred_at="2020-02-02T12:00:00+08:00", topic="people->li", speaker="Ann")
    (hit,) = dify.use("recall", cue="Who came?").variables["hits"]
    assert (hit["occurred_at"], hit["speaker"]) == ("2020-02-02T04:00:00Z", "Ann")


def test_two_invocations_overlap(daemon, credentials):
    """Both are under way in the one process before either has ended, and each gets its own answer."""
    apps = [Dify(daemon, credentials) for _ in range(2)]
    begun, replies = threading.Barrier(2, timeout=30), {}

    def embed(request):
        begun.wait()  # passed only when the other invocation has come as far
        return embedding(*[[1.0] + [0.0] * 383 for _ in request["texts"]])

    def work(number):
        model = {"provider": "p", "model": "m", "model_type": "text-embedding"}
        replies[number] = apps[number].use("remember", embed, content=f"I am {number}", embedding_model=model)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [replies[number].error for number in range(2)] == [None, None]
    for number, app in enumerate(apps):
        assert [hit["content"] for hit in app.use("recall", cue="who").variables["hits"]] == [f"I am {number}"]


def test_many_invocations_at_once(dify):
    sessions = [
        dify.daemon.start(dify.request("remember", {"content": f"Fact number {number}"}), **dify.ids())
        for number in range(24)
    ]
    replies = [dify.daemon.collect(session) for session in sessions]
    assert [reply.error for reply in replies] == [None] * 24
    assert Counter(len(reply.variables["ids"]) for reply in replies) == {1: 24}
    assert len(dify.use("recall", cue="Fact number", limit=100).variables["hits"]) == 24
