"""The workflow, the Dify plugin and Python mean the same memory by the same names."""

from __future__ import annotations

import ast
import hashlib
import os
import random
import re
import string
import unicodedata

import pytest
from engine import WORKFLOWS

MADE = 3_000 if os.environ.get("RECOLLECT_TESTS") == "long" else 600
NAMES = [
    *(
        "li",
        "li@example.com",
        "li+work@example.com",
        "a:b",
        "x:",
        "x:li",
        "x::",
        "x:" + "0" * 64 + ":",
        ".",
        "...",
        "~",
    ),
    *(
        "Isabella Rodriguez",
        " Isabella\t Rodriguez\n",
        "Isabella_Rodriguez",
        "李雷",
        "李 雷",
        "李\u3000雷",
        "\xa0li\x1c",
    ),
    *(
        "a/b",
        "a\\b",
        "é",
        "e\u0301",
        "\ud800",
        "\x00",
        "a" * 128,
        "a" * 129,
        "a b" * 42,
        "a b" * 43,
        "/" * 42,
        "/" * 43,
    ),
    *("李" * 13, "李" * 14, "李" * 15, "伊莎 " * 40, "x:" + "a" * 126, "x:" + "a" * 127),
]


CHECKS = WORKFLOWS.parents[2] / "src" / "recollect" / "models" / "service.py"


def take(path, names, *wanted):
    """Run the statements of a file that define these names."""
    found = [
        each
        for each in ast.parse(path.read_text(encoding="utf-8")).body
        if (isinstance(each, ast.FunctionDef) and each.name in wanted)
        or (isinstance(each, ast.Assign) and any(name in ast.unparse(each.targets[0]) for name in wanted))
    ]
    assert len(found) == len(wanted)
    future = ast.parse("from __future__ import annotations").body
    exec(compile(ast.Module([*future, *found], []), path.name, "exec"), names)


def plugin_rule():
    """Take the plugin's function by its source: its module needs Dify's SDK, which patches what imports it."""
    names = {"hashlib": hashlib, "re": re, "unicodedata": unicodedata, "InvalidInputError": ValueError}
    take(CHECKS, names, "IDENTIFIER", "MAX_SCOPE_NAME_LENGTH", "BLANK_LETTER", "is_scope_name")
    take(WORKFLOWS.parent / "memory_tool.py", names, "QUOTED", "scope_name")
    return lambda field, name: names["scope_name"](field, {field: name}, None)


def workflow_rule():
    """Take the Code node's function as its program is run in Dify."""
    names = {"__name__": "build_request"}
    exec((WORKFLOWS / "build_request.py").read_text(encoding="utf-8"), names)
    return names["encode"]


@pytest.mark.parametrize("field", ["agent", "user"])
def test_the_workflow_and_the_plugin_write_a_name_alike(field):
    chance = random.Random(11)
    alphabet = string.ascii_letters + string.digits + "._:@-" + "x:x:" + "  /+%~李雷é\n"
    made = {"".join(chance.choices(alphabet, k=chance.randint(1, 200))) for _ in range(MADE)}
    names = [name for name in [*NAMES, *sorted(made)] if name.strip()]
    in_plugin, in_workflow = plugin_rule(), workflow_rule()
    assert {name: in_workflow(field, name) for name in names} == {name: in_plugin(field, name) for name in names}
    hashes = [name for name in names if re.fullmatch("x:[0-9a-f]{64}:", in_plugin(field, name))]
    assert len(hashes) > 100


@pytest.mark.parametrize("rule", [plugin_rule, workflow_rule])
def test_a_name_with_blanks_is_the_one_that_python_writes(rule):
    write = rule()
    assert write("agent", " Isabella  Rodriguez") == write("agent", "Isabella Rodriguez") == "Isabella Rodriguez"
    assert write("agent", "Isabella_Rodriguez") == "Isabella_Rodriguez"
    assert write("user", "Isabella Rodriguez ") == "Isabella Rodriguez"
    assert write("user", "Isabella_Rodriguez") == "Isabella_Rodriguez"


def test_nobody_stays_nobody():
    write = workflow_rule()
    assert [write(field, blank) for field in ("agent", "user") for blank in ("", " \n")] == [""] * 4
    with pytest.raises(ValueError, match="Fill in `agent`"):
        plugin_rule()("agent", " ")
