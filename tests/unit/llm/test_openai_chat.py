"""The chat model finds the strictest shape that an endpoint knows, repairs once, and tells its failures apart."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import httpx
import pytest
from pydantic import BaseModel, Field

from recollect.core.text.tokens import estimate
from recollect.errors import ChatModelError, SetupError
from recollect.llm.chat import ChatModel, ModelAnswer, Usage
from recollect.llm.endpoint import Breaker
from recollect.llm.openai.chat import ChatEndpoint, ChatTotals, OpenAIChatModel, unwrap
from support.models.fake_chat import FakeChatModel

SECRET, PROMPT = "sk-very-secret", "the user's private sentence"
ENDPOINT = ChatEndpoint("http://chat.test/v1", "tiny", key=SECRET, seconds=5)


class Colour(BaseModel):
    name: str
    warmth: int = Field(ge=1, le=10)


RED = Colour(name="red", warmth=9)
GOOD = RED.model_dump_json()


class Endpoint:
    """A scripted endpoint: answers with each of its lines in turn, the last one for ever."""

    def __init__(self, *script: object, **changes: object) -> None:
        self.script = list(script)
        self.questions: list[dict] = []
        self.model = OpenAIChatModel(
            replace(ENDPOINT, **changes), Breaker(failures=4, seconds=60), httpx.MockTransport(self.answer)
        )

    async def answer(self, request: httpx.Request) -> httpx.Response:
        assert request.url == "http://chat.test/v1/chat/completions"
        assert request.headers["authorization"] == f"Bearer {SECRET}"
        self.questions.append(json.loads(request.content))
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        said = said(self.questions[-1]) if callable(said) else said
        if said == "hang":
            await asyncio.Event().wait()
        if isinstance(said, Exception):
            raise said
        if isinstance(said, httpx.Response):
            return said
        return say(said)

    def shapes(self) -> list[str]:
        return [question.get("response_format", {"type": "text"})["type"] for question in self.questions]


def say(content: object, finish: str = "stop") -> httpx.Response:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": finish}
    return httpx.Response(200, json={"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})


def refuse(status: int, *shapes: str, words: str = f"{SECRET} {PROMPT}"):
    """Refuse some shapes, all if none is named, and answer the others."""

    def answer(question: dict) -> object:
        shape = question.get("response_format", {"type": "text"})["type"]
        return httpx.Response(status, json={"error": words}) if not shapes or shape in shapes else GOOD

    return answer


async def fails(endpoint: Endpoint) -> ChatModelError:
    with pytest.raises(ChatModelError) as caught:
        await endpoint.model.ask(PROMPT, Colour)
    assert SECRET not in str(caught.value)
    assert PROMPT not in str(caught.value)
    return caught.value


async def test_the_schema_is_asked_for_and_shown():
    endpoint = Endpoint(GOOD)
    model: ChatModel = endpoint.model
    assert await model.ask(PROMPT, Colour) == RED
    [question] = endpoint.questions
    assert question["model"] == "tiny"
    assert question["max_tokens"] == ENDPOINT.answer_tokens
    schema = question["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"], schema["schema"]) == ("Colour", True, Colour.model_json_schema())
    [message] = question["messages"]
    assert message["role"] == "user"
    assert message["content"].startswith(PROMPT)
    assert "JSON" in message["content"]
    assert '"warmth"' in message["content"]
    assert endpoint.model.total == ChatTotals(requests=1, prompt_tokens=7, completion_tokens=3)


@pytest.mark.parametrize("status", [400, 415, 422, 500, 501])
@pytest.mark.parametrize(
    ("unknown", "steps"),
    [
        (["json_schema"], ["json_schema", "json_object"]),
        (["json_schema", "json_object"], ["json_schema", "json_object", "text"]),
    ],
)
async def test_an_unknown_shape_leads_to_the_next_one_which_is_remembered(status, unknown, steps):
    endpoint = Endpoint(refuse(status, *unknown))
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    assert endpoint.shapes() == [*steps, steps[-1]]


async def test_a_shape_that_worked_is_not_given_up_for_an_error_of_the_server():
    endpoint = Endpoint(GOOD, httpx.Response(500), GOOD)
    await endpoint.model.ask(PROMPT, Colour)
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    assert endpoint.shapes() == ["json_schema"] * 3


async def test_a_newer_name_of_the_limit_is_learnt():
    def newer(question: dict) -> object:
        words = "Unsupported parameter: use 'max_completion_tokens' instead."
        return httpx.Response(400, json={"error": words}) if "max_tokens" in question else GOOD

    endpoint = Endpoint(newer)
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    assert endpoint.shapes() == ["json_schema"] * 3
    assert endpoint.questions[-1]["max_completion_tokens"] == ENDPOINT.answer_tokens


async def test_a_limit_that_the_window_cannot_hold_is_left_out():
    def narrow(question: dict) -> object:
        words = "'max_tokens' or 'max_completion_tokens' is too large: this model's context length is 2048 tokens"
        limited = {"max_tokens", "max_completion_tokens"} & question.keys()
        return httpx.Response(400, json={"message": words}) if limited else GOOD

    endpoint = Endpoint(narrow)
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    assert endpoint.shapes() == ["json_schema"] * 4


@pytest.mark.parametrize(
    "said",
    [
        f"```json\n{GOOD}\n```",
        f"Here you are:\n```\n{GOOD}\n```\nAnything else?",
        f"<think>red or {{blue}}? ```no```</think>\n\n{GOOD}",
        f"so it must be red</think>{GOOD}",
        f"Sure! {GOOD} I hope that helps.",
        [{"type": "text", "text": GOOD[:9]}, {"type": "text", "text": GOOD[9:]}],
        GOOD.replace("9", '"9"'),
    ],
)
async def test_a_wrapped_answer_is_unwrapped(said):
    endpoint = Endpoint(said)
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    assert len(endpoint.questions) == 1


def test_unwrapping_leaves_what_holds_no_object():
    assert unwrap("no object } here {") == "no object } here {"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("red, of course", "Invalid JSON"),
        ('{"name": "red", "warmth": 90}', "warmth"),
        ('{"name": "red"}', "warmth: Field required"),
        ("", "empty"),
        (None, "empty"),
        (say(GOOD[:12], "length"), "cut off"),
        (say(GOOD, "length"), "cut off"),
    ],
)
async def test_an_answer_of_no_use_is_repaired_once(said, complaint):
    endpoint = Endpoint(said, GOOD)
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    first, second = endpoint.questions
    assert second["messages"][0] == first["messages"][0]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert complaint in second["messages"][2]["content"]
    assert endpoint.model.total == ChatTotals(2, 14, 6)


async def test_garbage_twice_is_the_models_fault_and_not_lasting():
    endpoint = Endpoint(f"{SECRET} {PROMPT}")
    error = await fails(endpoint)
    assert (error.lasting, error.answered, error.unavailable) == (False, True, False)
    assert len(endpoint.questions) == 2
    assert "Colour" in str(error)


@pytest.mark.parametrize("status", [301, 401, 403, 404, 413])
async def test_a_refusal_is_lasting_and_not_repeated(status):
    endpoint = Endpoint(refuse(status))
    error = await fails(endpoint)
    assert (error.lasting, error.unavailable) == (True, False)
    assert str(status) in str(error)
    assert len(endpoint.questions) == 1


async def test_a_question_that_every_shape_is_refused_for_is_lasting():
    endpoint = Endpoint(refuse(400))
    error = await fails(endpoint)
    assert error.lasting
    assert "RECOLLECT_CHAT" in str(error)
    assert endpoint.shapes() == ["json_schema", "json_object", "text"]


@pytest.mark.parametrize("answer", [[], {"error": "busy"}, {"choices": []}, {"choices": [{"message": "hi"}]}])
async def test_an_answer_that_is_no_chat_is_lasting(answer):
    assert (await fails(Endpoint(httpx.Response(200, json=answer)))).lasting


@pytest.mark.parametrize("fault", [429, 503, httpx.ConnectError("gone"), httpx.ReadError("gone"), "<html>"])
async def test_a_passing_fault_is_tried_again(fault):
    broken = httpx.Response(200, text="<html>") if fault == "<html>" else fault
    broken = httpx.Response(fault, headers={"Retry-After": "0"}) if isinstance(fault, int) else broken
    endpoint = Endpoint(broken, GOOD)
    assert await endpoint.model.ask(PROMPT, Colour) == RED
    assert endpoint.shapes() == ["json_schema"] * 2


async def test_an_unavailable_endpoint_is_told_from_one_that_answers_nonsense():
    error = await fails(Endpoint(httpx.ConnectError("gone"), attempts=2))
    assert (error.lasting, error.answered, error.unavailable) == (False, False, True)


async def test_a_hang_ends_in_time():
    error = await fails(Endpoint("hang", seconds=0.1))
    assert error.unavailable
    assert "0.1 s" in str(error)


async def test_an_endpoint_that_keeps_failing_is_left_alone():
    endpoint = Endpoint(httpx.Response(503))
    await fails(endpoint)
    await fails(endpoint)
    asked = len(endpoint.questions)
    assert "keeps failing" in str(await fails(endpoint))
    assert len(endpoint.questions) == asked


async def test_a_closed_model_refuses():
    endpoint = Endpoint(GOOD)
    await endpoint.model.close()
    assert (await fails(endpoint)).lasting


@pytest.mark.parametrize("changes", [{"url": "localhost"}, {"model": ""}, {"key": "a\nb"}])
def test_a_wrong_configuration_is_explained(changes):
    with pytest.raises(SetupError, match="RECOLLECT_CHAT"):
        OpenAIChatModel(replace(ENDPOINT, **changes))
    assert SECRET not in repr(ENDPOINT)


async def test_the_fake_answers_by_its_script_and_counts():
    fake = FakeChatModel({Colour: RED})
    model: ChatModel = fake
    assert await model.ask("first", Colour) == RED
    fake.script = lambda prompt, answer: answer(name=prompt, warmth=1)
    assert await model.ask("second", Colour) == Colour(name="second", warmth=1)
    assert (fake.calls, fake.prompts) == (2, ["first", "second"])


async def test_the_fake_can_answer_nonsense_and_be_unavailable():
    fake = FakeChatModel({Colour: RED})
    fake.garble(2)
    for _ in range(2):
        with pytest.raises(ChatModelError) as caught:
            await fake.ask("?", Colour)
        assert caught.value.answered
    fake.fail()
    with pytest.raises(ChatModelError) as caught:
        await fake.ask("?", Colour)
    assert caught.value.unavailable
    fake.recover()
    assert await fake.ask("?", Colour) == RED


@pytest.mark.parametrize(
    ("reply", "text", "whole"),
    [
        (GOOD, GOOD, True),
        ("red, of course", "red, of course", True),
        (say(GOOD[:12], "length"), GOOD[:12], False),
        (say("", "length"), "", False),
        (None, "", True),
    ],
)
async def test_saying_gives_the_words_as_they_stand_and_asks_once(reply, text, whole):
    endpoint = Endpoint(reply)
    model: ChatModel = endpoint.model
    assert await model.complete(PROMPT, Colour) == ModelAnswer(text, whole, Usage(7, 3))
    assert endpoint.shapes() == ["json_schema"]
    assert endpoint.questions[0]["messages"][0]["content"].startswith(PROMPT)


async def test_saying_finds_the_shape_as_asking_does_and_fails_only_where_nothing_comes_back():
    endpoint = Endpoint(refuse(400, "json_schema"))
    assert (await endpoint.model.complete(PROMPT, Colour)).text == GOOD
    assert endpoint.shapes() == ["json_schema", "json_object"]
    with pytest.raises(ChatModelError) as caught:
        await Endpoint(httpx.Response(401)).model.complete(PROMPT, Colour)
    assert caught.value.lasting


async def test_every_question_tells_what_it_cost():
    noted: list[Usage] = []
    await Endpoint(GOOD).model.ask(PROMPT, Colour, noted.append)
    assert noted == [Usage(7, 3)]
    with pytest.raises(ChatModelError):
        await Endpoint("nonsense").model.ask(PROMPT, Colour, noted.append)
    assert noted == [Usage(7, 3)] * 3


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0}, {"prompt_tokens": "7"}, {"prompt_tokens": 10**30}])
async def test_what_the_endpoint_does_not_count_is_estimated(usage):
    answer = {"choices": [{"message": {"content": GOOD}}], "usage": usage}
    endpoint = Endpoint(httpx.Response(200, json=answer))
    said = await endpoint.model.complete(PROMPT, Colour)
    [message] = endpoint.questions[0]["messages"]
    assert said.usage == Usage(estimate(message["content"]), estimate(GOOD))


async def test_the_fake_says_what_its_script_says_word_for_word():
    fake = FakeChatModel({Colour: "half an ans"})
    model: ChatModel = fake
    assert await model.complete("?", Colour) == ModelAnswer(
        "half an ans", True, Usage(estimate("?"), estimate("half an ans"))
    )
    fake.script = {Colour: ModelAnswer(GOOD[:9], False, Usage(5, 2))}
    assert await fake.complete("?", Colour) == ModelAnswer(GOOD[:9], False, Usage(5, 2))
    with pytest.raises(ChatModelError) as caught:
        await fake.ask("?", Colour)
    assert caught.value.answered
    fake.script = {Colour: RED}
    assert Colour.model_validate_json((await fake.complete("?", Colour)).text) == RED
