"""Of an answer as much is kept as each limit allows, and what lies beyond it is counted by its sort."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.core.knowledge.extractions import (
    LAST_LINE,
    MAX_ALIASES,
    MAX_DESCRIPTION_LENGTH,
    MAX_END_LENGTH,
    MAX_KEYWORD_LENGTH,
    MAX_KEYWORDS,
    MAX_LABEL_LENGTH,
    MAX_LEVELS,
    MAX_MENTIONS,
    MAX_PATHS,
    MAX_PREDICATE_LENGTH,
    MAX_RATED,
    MAX_REPLACED,
    MAX_STATEMENT_LENGTH,
    MAX_STATEMENTS,
    MAX_SUMMARY_LENGTH,
    AnyExtraction,
    Extraction,
    parse_extraction,
)
from recollect.core.text.checks import MAX_NAME_LENGTH
from recollect.models.knowledge import EntityType, Mention, Statement, ValidTime

TALE = " ".join(f"word{number}" for number in range(2_000))
ANN, BOB = {"name": "Ann", "type": "person"}, {"name": "Bob", "type": "person"}


def state(**changes):
    return {"subject": "Ann", "predicate": "knows", "object": "Bob", "text": "They met."} | changes


def parse(shown=0, **answer):
    return parse_extraction(answer, shown)


def parse_facts(*facts, shown=0):
    return parse(shown, entities=[ANN, BOB], facts=list(facts))


def letters(length):
    """Give a word of a length that no rule takes for a repetition."""
    return "".join(TALE.split())[:length]


@pytest.mark.parametrize(("field", "longest"), [("summary", MAX_SUMMARY_LENGTH), ("label", MAX_LABEL_LENGTH)])
def test_a_long_text_is_cut_at_its_limit(field, longest):
    fits = parse(**{field: letters(longest)})
    assert (getattr(fits, field), fits.dropped) == (letters(longest), {})
    cut = parse(**{field: letters(longest + 1)})
    assert getattr(cut, field) == letters(longest - 1) + "…"
    assert cut.dropped == {"ends of texts": 1}


def test_descriptions_and_statements_are_cut_at_theirs():
    for more in (0, 1):
        said = parse(
            entities=[ANN | {"description": letters(MAX_DESCRIPTION_LENGTH + more)}, BOB],
            facts=[state(text=letters(MAX_STATEMENT_LENGTH + more))],
        )
        assert said.mentions[0].description.endswith("…") is bool(more)
        assert said.statements[0].text.endswith("…") is bool(more)
        assert said.dropped == ({"ends of texts": 2} if more else {})


@pytest.mark.parametrize(
    ("answer", "sort", "longest"),
    [
        (lambda name: {"entities": [ANN | {"name": name}]}, "entities", MAX_NAME_LENGTH),
        (lambda name: {"entities": [ANN | {"aliases": [name]}]}, "aliases", MAX_NAME_LENGTH),
        (lambda name: {"entities": [ANN, BOB], "facts": [state(predicate=name)]}, "facts", MAX_PREDICATE_LENGTH),
        (lambda name: {"entities": [ANN], "facts": [state(object=name)]}, "facts without ends", MAX_END_LENGTH),
        (lambda name: {"keywords": [name]}, "keywords", MAX_KEYWORD_LENGTH),
        (lambda name: {"paths": [[name]]}, "paths", MAX_LABEL_LENGTH),
        (lambda name: {"paths": [f"{name}->b"]}, "paths", MAX_LABEL_LENGTH),
    ],
)
def test_a_longer_name_is_none(answer, sort, longest):
    assert parse(**answer(letters(longest))).dropped == {}
    assert parse(**answer(letters(longest + 1))).dropped == {sort: 1}


def test_no_answer_is_counted_as_one():
    assert parse_extraction("no").dropped == {"answers": 1}
    assert parse_extraction(None).dropped == {"answers": 1}
    assert parse_extraction([]).dropped == {"answers": 1}


def test_an_answer_may_be_wrapped_once():
    assert parse_extraction({"result": 5, "extraction": {"label": "tea"}}).label == "tea"
    assert parse_extraction({"label": "tea", "extraction": {"label": "coffee"}}).label == "tea"
    assert parse_extraction([5, {"label": "tea"}, {"label": "coffee"}]).label == "tea"
    assert parse_extraction(({"label": "tea"},)).label == "tea"
    assert parse_extraction({"a": 1}).dropped == {}


def test_bytes_that_are_no_text_are_read_as_far_as_they_are():
    assert parse_extraction(b'{"label": "tea \xff time"}').label == "tea \ufffd time"


def test_an_answer_that_a_library_has_read_is_taken_as_it_is():
    assert parse_extraction(AnyExtraction({"label": "tea"})).label == "tea"
    whole = Extraction(
        summary="", label="tea", paths=["a->b"], entities=[], facts=[], importance=3, keywords=[], important=[]
    )
    assert parse_extraction(whole).paths == (("a", "b"),)


def test_four_paths_of_six_levels_are_kept():
    paths = [f"topic {number}" for number in range(MAX_PATHS + 2)]
    assert parse(paths=paths[:MAX_PATHS]).dropped == {}
    kept = parse(paths=paths)
    assert kept.paths == tuple((path,) for path in paths[:MAX_PATHS])
    assert kept.dropped == {"paths": 2}
    levels = [f"level {number}" for number in range(MAX_LEVELS + 1)]
    assert parse(paths=["->".join(levels)]).paths == (tuple(levels[:MAX_LEVELS]),)


def test_of_a_path_only_the_beginning_is_read():
    arrows = 2 * MAX_NAME_LENGTH - 1
    assert parse(paths=[f"a{'->' * arrows}b"]).paths == (("a", "b"),)
    assert parse(paths=[f"a{'->' * arrows} b"]).paths == (("a",),)


def test_a_path_that_is_no_text_is_counted():
    kept = parse(paths=[5, ["a", 5], "->", "b→c"])
    assert (kept.paths, kept.dropped) == ((("a",), ("b", "c")), {"paths": 1})


def test_so_many_keywords_are_kept():
    words = tuple(f"word{number}" for number in range(MAX_KEYWORDS + 2))
    assert parse(keywords=list(words[:MAX_KEYWORDS])).dropped == {}
    kept = parse(keywords=list(words))
    assert (kept.keywords, kept.dropped) == (words[:MAX_KEYWORDS], {"keywords": 2})


def test_so_many_messages_are_rated_by_lines_that_there_can_be():
    lines = [{"number": number, "importance": 5} for number in range(1, MAX_RATED + 2)]
    assert parse(important=lines).rated == dict.fromkeys(range(1, MAX_RATED + 1), 5)
    ends = [(1, 1), (LAST_LINE, 10), (0, 5), (LAST_LINE + 1, 5), (7, 0), (8, 11)]
    kept = parse(important=[{"number": number, "importance": importance} for number, importance in ends])
    assert (kept.rated, kept.dropped) == ({1: 1, LAST_LINE: 10}, {"important": 4})
    assert parse(important=[{"number": 1}, {"importance": 5}, "one"]).rated == {}


def test_so_many_entities_are_kept():
    named = [{"name": f"name {number}", "type": "person"} for number in range(MAX_MENTIONS + 1)]
    assert parse(entities=named[:MAX_MENTIONS]).dropped == {}
    kept = parse(entities=[*named, named[0] | {"description": "known already"}])
    assert [each.name for each in kept.mentions] == [each["name"] for each in named[:MAX_MENTIONS]]
    assert kept.mentions[0].description == "known already"
    assert kept.dropped == {"entities": 1}


def test_ends_of_facts_are_entities_as_long_as_there_is_room():
    named = [{"name": f"name {number}", "type": "person"} for number in range(MAX_MENTIONS - 1)]
    one = state(subject="name 1", object="Zoe")
    both = state(subject="Yan", object="Zoe")
    kept = parse(entities=named, facts=[both, one, both, one | {"predicate": "likes"}])
    assert [(each.subject, each.predicate, each.object) for each in kept.statements] == [
        ("name 1", "knows", "Zoe"),
        ("name 1", "likes", "Zoe"),
    ]
    assert kept.mentions[-1] == Mention("Zoe")
    assert (len(kept.mentions), kept.dropped) == (MAX_MENTIONS, {"facts without ends": 2})


def test_so_many_aliases_are_kept_that_are_not_the_name():
    names = [f"name {number}" for number in range(MAX_ALIASES + 1)]
    [mention] = parse(entities=[ANN | {"aliases": ["ann", *names, "Name 0"]}]).mentions
    assert mention.aliases == tuple(names[:MAX_ALIASES])
    [mention] = parse(entities=[ANN | {"aliases": names[:5]}, ANN | {"aliases": names[4:]}]).mentions
    assert mention.aliases == tuple(names[:MAX_ALIASES])


def test_of_several_descriptions_the_first_stands():
    said = [ANN, ANN | {"description": "a gardener"}, ANN | {"description": "a baker"}]
    [mention] = parse(entities=said).mentions
    assert mention.description == "a gardener"


@pytest.mark.parametrize(
    ("said", "kind", "dropped"),
    [
        ("people", EntityType.PERSON, 0),
        ("USER", EntityType.PERSON, 0),
        ("人物", EntityType.PERSON, 0),
        ("location", EntityType.PLACE, 0),
        ("country", EntityType.PLACE, 0),
        ("地点", EntityType.PLACE, 0),
        ("company", EntityType.ORGANIZATION, 0),
        ("Organisation", EntityType.ORGANIZATION, 0),
        ("object", EntityType.THING, 0),
        ("food", EntityType.THING, 0),
        ("sport", EntityType.ACTIVITY, 0),
        ("活动", EntityType.ACTIVITY, 0),
        (" City ", EntityType.PLACE, 0),
        ("公司", EntityType.ORGANIZATION, 0),
        ("Animal", EntityType.THING, 0),
        ("hobby", EntityType.ACTIVITY, 0),
        ("skill", EntityType.SKILL, 0),
        ("other", EntityType.OTHER, 0),
        ("person".ljust(MAX_LABEL_LENGTH), EntityType.PERSON, 0),
        ("person".ljust(MAX_LABEL_LENGTH + 1), EntityType.OTHER, 1),
        ("wizard", EntityType.OTHER, 1),
        ("", EntityType.OTHER, 1),
        (None, EntityType.OTHER, 1),
        (["person"], EntityType.OTHER, 1),
    ],
)
def test_a_type_is_one_of_ours_or_what_models_call_it(said, kind, dropped):
    kept = parse(entities=[{"name": "Ann", "type": said}])
    assert (kept.mentions[0].type, kept.dropped.get("types", 0)) == (kind, dropped)


def test_a_name_goes_before_an_alias():
    cat = {"name": "Cat", "type": "person", "aliases": ["Ann", "Kitty"]}
    kept = parse(entities=[cat, ANN], facts=[state(object="Kitty")])
    assert [(each.subject, each.object) for each in kept.statements] == [("Ann", "Cat")]


def test_an_entity_with_a_type_takes_the_place_of_the_one_without():
    said = [{"name": "Ann"}, BOB, ANN | {"aliases": ["Annie"]}, {"name": "ann", "description": "a gardener"}]
    assert parse(entities=said).mentions == (
        Mention("Ann", EntityType.PERSON, ("Annie",), "a gardener"),
        Mention("Bob", EntityType.PERSON),
    )


def test_so_many_facts_are_kept_and_repetitions_take_no_room():
    facts = [state(predicate=f"verb {number}") for number in range(MAX_STATEMENTS + 2)]
    assert parse_facts(*facts[:MAX_STATEMENTS]).dropped == {}
    kept = parse_facts(facts[0], *facts)
    assert [each.predicate for each in kept.statements] == [each["predicate"] for each in facts[:MAX_STATEMENTS]]
    assert kept.dropped == {"facts": 2, "repetitions": 1}


def test_a_fact_replaces_so_many():
    numbers = [*range(1, MAX_REPLACED + 3)]
    [stated] = parse_facts(state(replaces=numbers), shown=99).statements
    assert stated.replaces == tuple(numbers[:MAX_REPLACED])
    [stated] = parse_facts(state(replaces=numbers[9:]), state(replaces=numbers[:10]), shown=99).statements
    assert stated.replaces == (*numbers[9:], *numbers[: MAX_REPLACED - len(numbers[9:])])


def test_what_is_replaced_may_be_one_number_and_what_was_not_shown_is_counted():
    kept = parse_facts(state(replaces=2.0), state(predicate="likes", replaces=[3, 4, 0]), shown=3)
    assert [each.replaces for each in kept.statements] == [(2,), (3,)]
    assert kept.dropped == {"replaced": 2}
    assert parse_facts(state(replaces=True), shown=3).statements[0].replaces == ()


def test_what_was_true_at_two_times_is_two_facts():
    first = state(valid_at="2020", invalid_at="2021")
    kept = parse_facts(first, state(valid_at="2022"), state(valid_at="2023"))
    moments = [datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2021, 2022)]
    assert [each.span for each in kept.statements] == [ValidTime(moments[0], moments[1]), ValidTime(moments[2])]
    assert kept.dropped == {"repetitions": 1}


@pytest.mark.parametrize(("predicate", "told"), [("knows", "Ann knows Bob"), ("认识", "Ann认识Bob")])
def test_a_fact_without_words_is_told_by_its_parts(predicate, told):
    for text in (None, "", 5):
        [stated] = parse_facts(state(predicate=predicate, text=text)).statements
        assert stated == Statement("Ann", predicate, "Bob", told)


@pytest.mark.parametrize("missing", ["subject", "predicate", "object"])
def test_a_fact_without_one_of_its_parts_is_none(missing):
    kept = parse_facts(state(**{missing: None}))
    assert (kept.statements, kept.dropped) == ((), {"facts": 1})
    assert len(kept.mentions) == 2


def test_what_is_dropped_is_counted_by_its_sort():
    kept = parse(
        summary=1,
        label=1,
        importance="high",
        entities=[ANN | {"description": 1, "aliases": [1, "A."]}, 7, BOB],
        facts=["no", state(text=1, valid_at="soon", replaces="none"), state(object="ann")],
        keywords=7,
        important=7,
    )
    assert kept.dropped == {
        **dict.fromkeys(("summaries", "labels", "importances", "entities", "descriptions", "aliases"), 1),
        **dict.fromkeys(("facts", "texts", "dates", "replaced", "facts about nothing else", "keywords"), 1),
        "important": 1,
    }
    assert kept.mentions[0].aliases == ("A.",)


@pytest.mark.parametrize("part", ["entities", "facts", "paths", "keywords", "important"])
def test_a_part_that_should_be_a_list_and_is_none_is_counted_once(part):
    assert parse(**{part: 7}).dropped == {part: 1}
    assert parse(**{part: None}).dropped == {}
