"""The patterns of sentences that a tired reader stumbles over, and how often they occur in each kind of text.

make words                     print a table
make words ARGS="beside"       print each line in which a pattern with this word occurs
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from recollect.core.conversations import prompt_texts
from recollect.doors.cli.main import HELP, load_command
from recollect.doors.http.app import create_app
from recollect.doors.mcp.tools import TOOLS
from recollect.settings import list_settings

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "recollect"
ALLOWED = "style: ok"
QUOTED = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|\b(What|Who|Where)\b[^.?!]*\?")
"""Code, quoted speech and questions: they may use any words."""
SENTENCES = {
    "so many, so much": r"\b(so many|so much|so long|so far as)\b(?! (that|as))",
    "what is ...": r"(?<![\w`])[Ww]hat (is|was|are|were|has|had|it|they|lies|stands|comes|came|follows|scores|helps"
    r"|happened|must|may|can)\b",
    "whoever, whom, who asks": r"\b([Ww]hoever|[Ww]hom\b|[Ww]ho (asks|calls|writes|reads|waits|follows)\b)",
    "lie, stand": r"\b(lies?|lay|lying|stands?|stood)\b(?! (out|by)\b)",
    "remind of": r"\breminds? (of|by)\b|\breminded of\b",
    "meanwhile": r"\b[Mm]eanwhile\b",
    "beside": r"\b[Bb]eside\b",
    "moment": r"\b[Mm]oments?\b",
    "tell": r"\b[Tt]ells?\b|\btold\b",
    "go on, bring back": r"\b(go|goes) on\b|\b(bring|brings|brought) \w* ?back\b",
    "where for if": r"[,;] where (it|that|there|nobody|nothing|its|they|this|not)\b"
    r"|\bwhere (nobody|nothing|there (is|are)|it is|that is)\b",
    "comes to be": r"\bcomes? (to be|of it|to mind|from it|so far)\b|\bcame (of|by)\b",
    "as it stands": r"\bas it (stands|is|was)\b(?=[.;,])",
    "there is no such": r"\b([Tt]here is|[Tt]here are) no such\b",
    "of its own": r"\bone after the other\b|\bby (itself|themselves)\b|\bof its own\b|\bof their own\b",
}
VERBS = {"docstring verb": r"^(Say|Let|Give|Tell|Take|Note)\b"}
CONSTANT = re.compile(
    r"(MOST|LONGEST|LEAST|FEWEST|LARGEST|SMALLEST|SHORTEST|DEEPEST|FARTHEST|HIGHEST|WIDEST|USUAL)(_|$)"
)
FUNCTION = re.compile(
    r"(tell|look_over|line_up|take_stock|let|leave|lend|heed|spare|bring|foresee|obey|mend|hear)(_|$)"
)
TYPE = re.compile(r"[A-Z][a-z]+(ed|en)$")
MAX_DEFINITIONS, MAX_GENERIC_DEFINITIONS = 3, 10


class Text(NamedTuple):
    """A text that people or models read, and its place."""

    kind: str
    place: str
    text: str


def list_texts() -> Iterator[Text]:
    """List every text of the product and of its English pages."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield from list_source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    yield from list_help()
    for name, field in list_settings().items():
        yield Text("settings", name, field.description or "")
    yield from find_descriptions("openapi", "", create_app().openapi())
    for name, tool in TOOLS.items():
        described = tool.describe_tool()
        yield Text("mcp", name, described.description or "")
        yield from find_descriptions("mcp", name, described.input_schema)
        yield from find_descriptions("mcp", name, described.output_schema or {})
    yield from list_prompts()
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for path in pages:
        if not path.name.endswith(".zh.md") and "adr" not in path.parts:
            yield from list_lines("pages", path)


def list_source(place: str, source: str) -> Iterator[Text]:
    """List the docstrings, remarks, comments and errors of a module."""
    lines = source.splitlines()

    def text(kind: str, line: int, content: str, last: int = 0) -> Iterator[Text]:
        if not any(ALLOWED in each for each in lines[line - 1 : last or line]):
            yield Text(kind, f"{place}:{line}", content)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from text("docstrings", node.lineno, node.value.value, node.end_lineno or 0)
        for line, content in list_errors(node):
            yield from text("errors", line, content)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from text("comments", token.start[0], token.string)


def name_of(node: ast.expr) -> str:
    """Return the last name of an expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def list_errors(call: ast.AST) -> Iterator[tuple[int, str]]:
    """List the strings in the arguments of an error, with their lines."""
    if isinstance(call, ast.Call) and name_of(call.func).endswith("Error"):
        for node in ast.walk(call):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, node.value


def list_help() -> Iterator[Text]:
    """List the help of every command and option."""
    for name, sentence in HELP.items():
        yield Text("help", name, sentence)
        yield from list_command(name, load_command(name))


def list_command(path: str, command: Any) -> Iterator[Text]:
    """List the help of a command, of its options and of the commands below it."""
    yield Text("help", path, command.help or "")
    for parameter in command.params:
        shown = (getattr(parameter, "help", None), getattr(parameter, "show_default", None))
        yield from (Text("help", f"{path} {parameter.name}", each) for each in shown if isinstance(each, str))
    for name, each in getattr(command, "commands", {}).items():
        yield from list_command(f"{path} {name}", each)


def find_descriptions(kind: str, place: str, node: Any) -> Iterator[Text]:
    """List the summaries and descriptions of a JSON document."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in {"summary", "description"} and isinstance(value, str):
                yield Text(kind, place, value)
            else:
                yield from find_descriptions(kind, f"{place}/{key}", value)
    elif isinstance(node, list):
        for value in node:
            yield from find_descriptions(kind, place, value)


def list_prompts() -> Iterator[Text]:
    """List the texts of prompts: for models that enrich, and around memories."""
    for path in sorted((PACKAGE / "llm" / "prompts").glob("*.md")):
        yield from list_lines("prompts", path)
    for name in prompt_texts.ENGLISH.__slots__:
        yield Text("prompts", f"wording.{name}", str(getattr(prompt_texts.ENGLISH, name)))


def list_lines(kind: str, path: Path) -> Iterator[Text]:
    """List the lines of a page, without its programs and their output."""
    programs = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        programs ^= line.lstrip().startswith("```")
        if ALLOWED not in line and not programs and not line.startswith("    "):
            yield Text(kind, f"{path.relative_to(ROOT).as_posix()}:{number}", line)


def find_relapses(texts: Iterable[Text]) -> Iterator[tuple[str, Text, str]]:
    """Find every occurrence of a pattern: its name, the text and the words."""
    for text in texts:
        verbs = VERBS if text.kind in {"docstrings", "help", "settings", "openapi", "mcp"} else {}
        for name, pattern in (SENTENCES | verbs).items():
            shown = QUOTED.sub("...", text.text)
            yield from ((name, text, found[0]) for found in compiled(pattern).finditer(shown))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern once."""
    return re.compile(pattern)


def list_names() -> Iterator[tuple[str, str, str]]:
    """List the names that the package defines, each with its sort and its module."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield "function", node.name, place
            elif isinstance(node, ast.ClassDef):
                yield "class", node.name, place
        for statement in tree.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            targets += [statement.target] if isinstance(statement, ast.AnnAssign) else []
            for target in targets:
                yield from (("constant", each.id, place) for each in ast.walk(target) if isinstance(each, ast.Name))


def find_poor_names() -> Iterator[tuple[str, str]]:
    """Find names that say nothing or hide their meaning: the sort of fault, and the name with its place."""
    patterns = {"function": FUNCTION, "class": TYPE, "constant": CONSTANT}
    modules: dict[str, set[str]] = {}
    for sort, name, place in list_names():
        if sort == "function" and not name.startswith("__"):
            modules.setdefault(name, set()).add(place)
        if patterns[sort].match(name.lstrip("_")):
            yield sort, f"{name} ({place})"
    for name, places in sorted(modules.items()):
        if len(places) > MAX_DEFINITIONS:
            yield "name in more than three modules", f"{name} ({len(places)})"
        if len(places) > MAX_GENERIC_DEFINITIONS:
            yield "name in more than ten modules", f"{name} ({len(places)})"


def main(word: str = "") -> None:
    """Print the table, or the lines of the patterns that have a word in their name."""
    found = list(find_relapses(list_texts()))
    if word:
        for name, text, words in found:
            if word in {name, text.kind} or word in name:
                print(f"{text.kind:<10} {text.place}: [{words}] {' '.join(text.text.split())[:160]}")
        for sort, name in find_poor_names():
            if word == sort or word == "names":
                print(f"{sort}: {name}")
        return
    kinds = ["help", "errors", "settings", "openapi", "mcp", "prompts", "docstrings", "comments", "pages"]
    counts = Counter((name, text.kind) for name, text, _ in found)
    print(f"{'pattern':<26}" + "".join(f"{kind:>11}" for kind in kinds))
    for name in SENTENCES | VERBS:
        print(f"{name:<26}" + "".join(f"{counts[name, kind]:>11}" for kind in kinds))
    print(f"{'in all':<26}" + "".join(f"{sum(counts[name, kind] for name in SENTENCES | VERBS):>11}" for kind in kinds))
    for sort, count in Counter(sort for sort, _ in find_poor_names()).items():
        print(f"{sort:<34}{count:>4}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
