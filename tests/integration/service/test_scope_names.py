"""Agents and users have names of any script, by every door, and each name is one scope."""

from __future__ import annotations

import asyncio

import pytest

from conftest import http_client, new_key
from recollect.client import Client
from recollect.errors import ForbiddenError, InvalidInputError
from support.programs.command_line import call, settings_of
from support.service.mcp_doors import bound_key, listening, over_http

AGENT, USER = "阿信", "Isabella Rodriguez"


@pytest.fixture
async def mind(recollect):
    return await recollect.mind(AGENT, USER)


async def test_every_door_opens_the_same_scope(recollect, mind, addresses):
    await mind.remember("李雷对花生过敏。")
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        asked = {"agent": AGENT, "user": USER}
        found = await http.post("/v1/recall", json=asked | {"text": "花生"})
        listed = await http.get("/v1/memories", params=asked)
        knowledge = {"knowledge_id": f"{AGENT}/{USER}", "query": "花生", "retrieval_setting": {"top_k": 3}}
        records = await http.post("/dify/retrieval", json=knowledge)
    assert found.json()["hits"][0]["memory"]["content"] == "李雷对花生过敏。"
    assert [memory["content"] for memory in listed.json()["memories"]] == ["李雷对花生过敏。"]
    assert [record["content"] for record in records.json()["records"]] == ["李雷对花生过敏。"]
    async with listening(recollect) as url:
        async with Client(url, secret) as client:
            assert (await (await client.mind(AGENT, USER)).recall("花生")).hits
        async with over_http(url, secret) as session:
            answer = await session.call_tool("recall", {"text": "花生", "agent": AGENT, "user": USER})
            assert "花生过敏" in str(answer.content)
    said = call("recall", "--agent", AGENT, "--user", USER, "花生", settings=settings_of(addresses))
    assert (said.code, "花生过敏" in said.stdout) == (0, True)
    assert (await (await recollect.mind(AGENT)).recall("花生")).hits == ()


async def test_a_key_is_bound_to_names_of_any_script(recollect, mind):
    await mind.remember("tea")
    secret = await bound_key(recollect, AGENT, USER)
    assert (await (await recollect.authorize(secret, "api", "", "")).recall("tea")).hits
    with pytest.raises(ForbiddenError):
        await recollect.authorize(secret, "api", AGENT, "李雷")


async def test_the_same_name_in_another_form_is_refused(recollect):
    await recollect.mind("José")
    with pytest.raises(InvalidInputError, match="NFC"):
        await recollect.mind("Jose\u0301")


async def test_what_is_done_later_is_done_for_names_of_any_script(recollect, mind):
    conversation = mind.conversation("dinner")
    await conversation.append("周五七点，李雷带米饭。")
    await conversation.update(close_segment=True)
    async with asyncio.timeout(60):
        await recollect.work(until_empty=True)
        assert await recollect.wait()
    assert (await conversation.segments())[0].state == "enriched"
    caller = await recollect.operator.act_for("default")
    assert (await recollect.jobs.page(caller)).jobs == ()
    assert await recollect.ledger(AGENT, USER)


def test_the_command_line_speaks_chinese_where_the_locale_does(addresses):
    chinese = settings_of(addresses) | {"LC_ALL": "zh_CN.UTF-8"}
    assert "没有找到" in call("recall", "--agent", AGENT, "花生", settings=chinese).stdout
    assert (
        "nothing found"
        in call(
            "recall",
            "--agent",
            AGENT,
            "花生",
            settings=settings_of(
                addresses,
            ),
        ).stdout
    )
    shown = call("recall", "--prompt", "--agent", AGENT, "花生", settings=chinese)
    assert "没有可显示的内容" in shown.stdout
    assert "0 / 2000 个 token" in shown.stderr
