"""What a sensible model would say of data/zereker_memory, by rules: the same however it is cut.

Each rule is a phrase that the user says, the fact it teaches, and which known facts are over because of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LINE = re.compile(r"\d+\. \[(\d{4}-\d\d-\d\d) \d\d:\d\d \w+\] \S+ \(user\): (.*)")
KNOWN = re.compile(r"^(\d+)\. (.+?)(?: \((?:since|until) [^)]*\))?$", re.MULTILINE)
AXIN, MARK, XIAOYA = "阿信", "Mark", "小雅"
TYPES = {AXIN: "person", MARK: "person", XIAOYA: "person", "星光科技": "organization", "《赛博王权》": "product"}
SPORTS = ("跑步", "游泳", "瑜伽", "茶道")


@dataclass(frozen=True)
class Rule:
    """When the user says `phrase`, `text` is learned, and what `over` finds among the known facts is no longer true."""

    phrase: str
    subject: str
    predicate: str
    object: str
    text: str
    over: str = ""


LIKES_PORK = "阿信喜欢吃红烧肉"
LIKES_BELLY = "阿信爱吃烤五花肉"
NO_PORK = "阿信决定不吃猪肉了，连红烧肉都觉得恶心"
LIKES_GAME = "阿信很喜欢玩《赛博王权》，经常一玩就是整夜"
DUSTY = "阿信的游戏机都积灰了"
SOLD = "阿信把游戏机卖了，不再玩《赛博王权》"
RUNS = "阿信的运动是跑步"
SWIMS = "阿信的运动是游泳，因为跑步膝盖疼"
DOES_YOGA = "阿信现在的运动是瑜伽，不再喜欢游泳"
JUNIOR = "阿信是星光科技的初级工程师"
SENIOR = "阿信升为中级软件工程师"
STRICT = "Mark对阿信很严肃"
COLD = "Mark对阿信有点冷淡"
CRITICAL = "Mark批评阿信基础不够扎实"
PRAISING = "Mark表扬阿信的方案，很认可他"
COLLEAGUES = "小雅是阿信的同事"
LOVERS = "小雅是阿信的恋人"
VEGETARIAN = "小雅一直是素食主义者"
ILL = "阿信的血压血脂偏高"
WELL = "阿信的血压血脂恢复正常了"

RULES = (
    Rule("今天去星光科技报到了", AXIN, "就职于", "星光科技", "阿信在星光科技工作"),
    Rule("我被分到了初级工程师岗位", AXIN, "职位", "初级工程师", JUNIOR),
    Rule("想起小时候妈妈做的红烧肉", AXIN, "喜欢吃", "红烧肉", LIKES_PORK),
    Rule("见到了直属上司Mark", AXIN, "上司", MARK, "阿信的上司是Mark"),
    Rule("感觉他很严肃", MARK, "态度", "严肃", STRICT),
    Rule("这游戏真的太好玩了", AXIN, "喜欢玩", "《赛博王权》", LIKES_GAME),
    Rule("感觉他对我有点冷淡", MARK, "态度", "冷淡", COLD, over="Mark.*严肃"),
    Rule("五花肉和牛肉都很香", AXIN, "喜欢吃", "五花肉", LIKES_BELLY),
    Rule("坐在我旁边的同事小雅", XIAOYA, "关系", AXIN, COLLEAGUES),
    Rule("血压血脂都偏高了", AXIN, "健康状况", "血压血脂偏高", ILL),
    Rule("早上去跑步了", AXIN, "运动", "跑步", RUNS),
    Rule("晚上第一次去游泳", AXIN, "运动", "游泳", SWIMS, over="运动是跑步"),
    Rule("Mark今天在会议上批评得很严厉", MARK, "态度", "批评", CRITICAL, over="Mark.*(严肃|冷淡)"),
    Rule("决定以后不吃猪肉了", AXIN, "不吃", "猪肉", NO_PORK, over="吃.*(红烧肉|五花肉)$"),
    Rule("她一直都是素食主义者", XIAOYA, "是", "素食主义者", VEGETARIAN),
    Rule("游戏机都积灰了", AXIN, "闲置", "游戏机", DUSTY),
    Rule("他居然表扬我了", MARK, "态度", "认可", PRAISING, over="Mark(批评|.*冷淡|.*严肃)"),
    Rule("开始尝试瑜伽课", AXIN, "运动", "瑜伽", DOES_YOGA, over="运动是(跑步|游泳)"),
    Rule("升为中级软件工程师", AXIN, "职位", "中级软件工程师", SENIOR, over="初级工程师"),
    Rule("把游戏机卖了", AXIN, "卖了", "游戏机", SOLD, over="喜欢玩《赛博王权》|积灰"),
    Rule("想学学茶道", AXIN, "学习", "茶道", "阿信在学茶道"),
    # Said once more: a fact that is known is recognised, and nothing is over.
    Rule("和他说我现在不吃猪肉了", AXIN, "不吃", "猪肉", NO_PORK),
    Rule("那天晚上我们确定关系了", XIAOYA, "恋人", AXIN, LOVERS, over="小雅是阿信的同事"),
    Rule("血压血脂都恢复正常了", AXIN, "健康状况", "血压血脂正常", WELL, over="偏高"),
)


def answer(shape: str, prompt: str) -> object:
    """Say what a model would that was asked in this shape."""
    if shape == "AnyMatches":
        return {"matches": []}
    assert shape == "AnyExtraction", shape
    return extraction(prompt)


def extraction(prompt: str) -> object:
    """Apply every rule whose phrase the user says, in the order of what was said."""
    conversation = _between(prompt, "conversation")
    known = KNOWN.findall(_between(prompt, "facts"))
    said = [found for line in conversation.splitlines() if (found := LINE.fullmatch(line))]
    learned = [(line[1], rule) for line in said for rule in RULES if rule.phrase in line[2]]
    facts: list[dict[str, object]] = []
    for day, rule in learned:
        over = re.compile(rule.over) if rule.over else None
        for fact in facts:
            if over and over.search(str(fact["text"])):
                fact["invalid_at"] = day
        replaced = [int(number) for number, text in known if over and over.search(text)]
        ends = {"subject": rule.subject, "predicate": rule.predicate, "object": rule.object}
        facts.append({**ends, "text": rule.text, "valid_at": day, "invalid_at": None, "replaces": replaced})
    words = " ".join(line[2] for line in said)
    return {
        "summary": words[:200] or "他们聊天。",
        "label": words[:8] or "聊天",
        "paths": ["生活 -> 日常"],
        "entities": [describe(name) for _, rule in learned for name in (rule.subject, rule.object)],
        "facts": facts,
        "importance": 5,
        "keywords": [],
    }


def describe(name: str) -> dict[str, object]:
    """Give an entity as an extraction lists it."""
    usual = "activity" if name in SPORTS else "thing"
    return {"name": name, "type": TYPES.get(name, usual), "aliases": [], "description": ""}


def _between(prompt: str, tag: str) -> str:
    return prompt.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0]
