"""The rules of the house that no other tool checks: each takes a root folder and lists what breaks it."""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path("src") / "recollect"
CODE = ("src", "bench", "integrations", "examples", "tests", "tools")
FILE_LINES, TEST_FILE_LINES, FUNCTION_LINES = 400, 600, 50
FEWEST_LINES, MOST_FILES = 40, 15
METHODS, PARAMETERS = 15, 6
INTEGRATION_LINES = 300
FOREIGN = {"__pycache__", ".venv", "node_modules"}
UNCOUNTED = {"tests", "workflows", "dist"}
CLIENT = re.compile(r"recollect\.(client|sync|models|errors)(\.\w+)?")

ROOMS = {"models", "core", "store", "llm", "channels", "verbs", "jobs", "mind", "client", "sync", "doors"}
FILES = {"__init__", "errors", "loading", "misspelt", "setting_groups", "settings", "tracing", "wiring"}
LOADED = {
    "anyio": "only who waits needs it",
    "anyio.from_thread": "only who has no event loop needs it",
    "difflib": "only who misspells a name needs it",
    "recollect.client.bodies": "the values, which an import of the SDK does not need",
    "recollect.core.conversations.messages": "the messages, which who does not append does not need",
    "recollect.core.text.checks": "the rules of names, which a plain name does not need",
    "recollect.doors.cli.server": "the server, after the first line of its start",
    "recollect.client.special": "the values, which an import of the SDK does not need",
    "cryptography.exceptions": "an extra",
    "cryptography.hazmat.primitives.ciphers.aead": "an extra",
    "mcp_types": "an extra",
    "neo4j": "an extra",
    "obstore": "an extra",
    "obstore.exceptions": "an extra",
    "obstore.store": "an extra",
    "onnxruntime": "an extra",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter": "an extra",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter": "an extra",
    "opentelemetry.sdk.metrics": "an extra",
    "opentelemetry.sdk.metrics.export": "an extra",
    "opentelemetry.sdk.resources": "an extra",
    "opentelemetry.sdk.trace": "an extra",
    "opentelemetry.sdk.trace.export": "an extra",
    "opentelemetry.sdk.trace.sampling": "an extra",
    "opentelemetry.trace.propagation.tracecontext": "an extra",
    "rjieba": "an extra",
    "tiktoken": "only who counts tokens needs it",
    "tokenizers": "an extra",
    "uvloop": "not made for every platform",
    "zstandard": "an extra",
    "recollect.doors.mcp.http": "an extra",
    "recollect.doors.mcp.stdio": "a sub-command",
    "recollect.settings": "the warning of a command, which the help does not need",
    "recollect.llm.local.gloss.embedder": "an extra",
    "recollect.llm.local.minilm": "an extra",
    "recollect.store.embedded.cluster": "an extra",
    "recollect.store.mirrors.neo4j": "an extra",
    "recollect.store.mirrors.opensearch": "an extra",
    "recollect.wiring": "`sync.open`, without which the SDK needs no engine",
}
"""All that is imported late, and why."""
LOADERS = {f"{PACKAGE}/{path}" for path in ("__init__.py", "models/__init__.py", "doors/cli/main.py")}
"""Who loads what a variable names: the public names of a package, and the rooms of the command line."""
SMALL = {
    "core/service/batches.py": "shared by rooms that have nothing else in common",
    "doors/mcp/command.py": "loaded for the help of the command line, without the protocol",
    "loading.py": "below all others",
    "mind/items.py": "a room of the facade",
    "client/items.py": "a room of the facade",
}
"""Files that are shorter than others may be, and why."""
VAGUE = {"util", "utils", "helper", "helpers", "common", "base", "manager", "managers", "misc"}
NO_CHANNELS = {"__init__", "channel"}

# These could not be written by accident, so they are banned everywhere.
LOST_WORDS = (
    *("poignancy", "ConceptNode", "memory_nodes", "kw_strength", "kw_to_event"),
    *("persona_name", "app_id", "session_id", "focal_point", "focal_text"),
    *("MemorySlice", "memory_slice", "MemoryUnit", "memory_unit", "TopicBinding"),
    *("topic_binding", "ActivationProfile", "activation_profile", "EpisodeIDs", "episode_ids"),
    *("SliceRef", "slice_ref", "TokenBufferMemory", "AssociativeMemory", "MemoryRuntime"),
    *("activated_memory_slices", "memory_context", "new_retrieve", "run_reflect", "AfterRolling"),
    "get_history_prompt_messages",
)
ANYWHERE = re.compile(rf"(?<![a-z])({'|'.join(LOST_WORDS)})(?![a-z])", re.IGNORECASE)
# These are also plain English, so they are banned only as (parts of) names.
LOST_NAMES = {"persona", "personas", "namespace", "namespaces", "filling", "focal", "episode", "episodes"}
# Where the words of other systems are translated into ours; the whole schema only repeats its migrations.
TRANSLATORS = re.compile(r"/(imports?|importers?|(\d+_)?compat\w*)[/.]|/import_\w+\.|/schema\.sql$|^integrations/")

GLOSSARY = (
    *("tenant", "agent", "user", "scope", "mind", "memory", "kind", "entity", "evidence"),
    *("conversation", "thread", "history", "topic", "keyword", "strength", "importance", "cue", "channel"),
    *("candidate", "hit", "block", "job", "worker", "remember", "recall", "associate", "reflect"),
    "forget",
)

_OBJECT = (
    r"(unique index|index|table|view|materialized view|function|procedure|role|schema|database|extension"
    r"|policy|type|trigger|sequence|domain|user)"
)
SQL = re.compile(
    r"\s*("
    r"select\b.*\bfrom\b|select\s+[\w.]+\(|insert\s+into\b|update\s+\S+\s+(as\s+\w+\s+)?set\b|delete\s+from\b"
    rf"|(create|alter|drop)\s+(or\s+replace\s+|temp(orary)?\s+|unlogged\s+)?{_OBJECT}\b"
    r"|with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\s+((not\s+)?materialized\s+)?\("
    r"|truncate\s+(table\s+)?[\w.]+\s*;?$|(grant|revoke)\s+(all|select|insert|usage|execute)\b|merge\s+into\b"
    r"|set\s+(local|session|role)\b|copy\s+\S+\s*(\([^)]*\))?\s*(from|to)\s+std"
    r"|explain\s*(\(|analyze|select)|lock\s+table\b|refresh\s+materialized\b"
    r")",
    re.IGNORECASE | re.DOTALL,
)
IMPURE_CALLS = {
    *("now", "utcnow", "today", "time", "time_ns", "monotonic", "perf_counter", "sleep"),
    *("uuid1", "uuid4", "uuid7", "urandom", "default_rng", "open", "print", "input", "getenv", "__import__"),
}

Rule = Callable[[Path], list[str]]


def check_sizes(root: Path) -> list[str]:
    """Files, functions, classes and parameter lists stop somewhere."""
    found: list[str] = []
    for path in [*_files(root, *CODE), *_files(root, "src", suffix=".sql")]:
        limit = TEST_FILE_LINES if path.is_relative_to(root / "tests") else FILE_LINES
        lines = len(_read(path).splitlines())
        if lines > limit and path.name != "schema.sql":
            found.append(f"{_name(root, path)}: {lines} lines, at most {limit}")
    for path in _files(root, *CODE):
        found += [f"{_name(root, path)}:{problem}" for problem in _learn(path).oversizes]
    for path in _files(root, "src"):
        found += [f"{_name(root, path)}:{problem}" for problem in _learn(path).crowds]
    return found


def check_docstrings(root: Path) -> list[str]:
    """Every module begins with its promise in one sentence."""
    found = []
    for path in _files(root, "src", "bench", "integrations"):
        promise = _learn(path).docstring.split("\n\n")[0]
        if len(promise.split()) < 3 or not promise.rstrip().endswith("."):
            found.append(f"{_name(root, path)}: no docstring that promises something in one sentence")
    return found


def check_words(root: Path) -> list[str]:
    """One name per thing: the words that lost are not used again."""
    found = []
    for path in [*_files(root, "src"), *_files(root, "src", suffix=".sql")]:
        if not TRANSLATORS.search(path.relative_to(root).as_posix()):
            lost = _lost_words(_read(path), path.suffix)
            found += [f"{_name(root, path)}:{line} {word}" for line, word in lost]
    return found


def check_rooms(root: Path) -> list[str]:
    """No vague names, and nothing at the top of the package that the plan does not know."""
    found = []
    for top in CODE:
        for path in _walk(root / top):
            counts = path.suffix in {"", ".py", ".sql"}
            if counts and set(path.stem.lower().split("_")) & VAGUE:
                found.append(f"{_name(root, path)}: a name that says nothing")
    for path in sorted((root / PACKAGE).iterdir()):
        known = path.name in ROOMS if path.is_dir() else path.stem in FILES
        if not known and path.name not in {"__pycache__", "py.typed"}:
            found.append(f"{_name(root, path)}: not in the plan of the house")
    return found


def check_sql(root: Path) -> list[str]:
    """SQL is in .sql files, never in strings."""
    found: list[str] = []
    for path in _files(root, "src"):
        found += [f"{_name(root, path)}:{line} SQL in a string" for line in _learn(path).queries]
    return found


def check_cycles(root: Path) -> list[str]:
    """No module imports itself by way of others, not in a function and not for the sake of types."""
    modules = {_module(root, path): path for path in _files(root, "src")}
    graph = {name: {_nearest(each, modules) for each in _learn(path).named} - {name} for name, path in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        return [" <- ".join(cycle.args[1])]
    return []


def check_loads(root: Path) -> list[str]:
    """All late imports are listed, and nothing else is listed."""
    loading = [path for path in _files(root, "src") if "recollect.loading.load" in _learn(path).named]
    loads = {(path, name) for path in loading for name in _learn(path).loaded}
    found = [f"{_name(root, path)}: loads {name}" for path, name in loads if name not in LOADED | {"": ""}]
    found += [
        f"{_name(root, path)}: loads a variable"
        for path, name in loads
        if not name and _name(root, path) not in LOADERS
    ]
    return found + [f"nobody loads {name}" for name in sorted(LOADED.keys() - {name for _, name in loads})]


def check_class_names(root: Path) -> list[str]:
    """A class name occurs only once in the whole tree."""
    places: dict[str, list[str]] = {}
    for path in _files(root, "src"):
        for name in _learn(path).classes:
            places.setdefault(name, []).append(_name(root, path))
    return [f"{name}: {' and '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]


def check_test_names(root: Path) -> list[str]:
    """No two files of tests have one name: pytest would refuse the second, in whichever process it meets both."""
    counted = Counter(path.name for path in _files(root, "tests") if path.name.startswith("test_"))
    return [f"{name}: {count} files of tests" for name, count in sorted(counted.items()) if count > 1]


def check_folders(root: Path) -> list[str]:
    """A folder is not crowded, and a file is more than a scrap."""
    modules = list(_files(root, "src"))
    crowds = Counter(path.parent for path in [*modules, *_files(root, "tests")])
    found = [f"{_name(root, path)}: {count} files" for path, count in crowds.items() if count > MOST_FILES]
    for path in modules:
        lines, place = len(_read(path).splitlines()), path.relative_to(root / PACKAGE).as_posix()
        plugin = path.stem == "__init__" or place.startswith("channels/")
        if lines < FEWEST_LINES and not plugin and place not in SMALL:
            found.append(f"{_name(root, path)}: {lines} lines, at least {FEWEST_LINES}; merge it with another")
    return found


def check_channels(root: Path) -> list[str]:
    """Every channel is a module and its query."""
    folder = root / PACKAGE / "channels"
    modules = {path.stem for path in folder.glob("*.py")} - NO_CHANNELS
    queries = {path.stem for path in folder.glob("*.sql")}
    missing = [f"channels/{name}.sql is missing" for name in sorted(modules - queries)]
    return missing + [f"channels/{name}.py is missing" for name in sorted(queries - modules)]


def check_integrations(root: Path) -> list[str]:
    """An integration is small, and knows nothing of Recollect but the client, its values and its errors."""
    found = []
    for project in sorted(path.parent for path in root.glob("integrations/*/pyproject.toml")):
        sources = [path for path in _files(project, ".") if not UNCOUNTED & set(path.relative_to(project).parts)]
        lines = sum(len(_read(path).splitlines()) for path in sources)
        if lines >= INTEGRATION_LINES:
            found.append(f"{_name(root, project)}: {lines} lines, fewer than {INTEGRATION_LINES} are allowed")
        for path in sources:
            known = [name for name in _learn(path).imported if name.split(".")[0] == "recollect"]
            found += [f"{_name(root, path)}: imports {name}" for name in known if not CLIENT.fullmatch(name)]
    return found


def check_purity(root: Path) -> list[str]:
    """Core and models receive the time and random numbers as arguments; they never read them."""
    found = []
    for path in _files(root, str(PACKAGE / "core"), str(PACKAGE / "models")):
        found += [f"{_name(root, path)}:{problem}" for problem in _learn(path).impurities]
    return found


def check_glossary(root: Path) -> list[str]:
    """Every word of the trade that the code uses is explained."""
    used = set().union(*(_learn(path).defined for path in _files(root, "src")))
    entries = [line.lower() for line in _read(root / "docs" / "glossary.md").splitlines() if line[:1] in set("|#*-")]
    explained = {word for word in GLOSSARY if any(re.search(rf"\b{word}\b", line) for line in entries)}
    return [f"docs/glossary.md does not explain {word}" for word in GLOSSARY if word in used - explained]


def check_decisions(root: Path) -> list[str]:
    """Every decision is numbered without a gap and listed."""
    folder = root / "docs" / "adr"
    listed = _read(folder / "README.md")
    records = sorted(path.name for path in folder.glob("*.md") if path.name != "README.md")
    found = [] if records else ["docs/adr holds no decision"]
    for number, name in enumerate(records, start=1):
        if not re.fullmatch(rf"{number:04}-[a-z0-9-]+\.md", name):
            found.append(f"docs/adr/{name}: expected {number:04}-some-words.md here")
        if name not in listed:
            found.append(f"docs/adr/{name} is not listed in docs/adr/README.md")
    return found


def check_settings(root: Path) -> list[str]:
    """Every setting is described for the operator."""
    page = _read(root / "docs" / "howto" / "configure.md")
    trees = [_parse(path) for path in sorted((root / PACKAGE).glob("setting*.py"))]
    classes = {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    names = _settings("RECOLLECT_", "Settings", classes)
    return [f"docs/howto/configure.md does not describe {name}" for name in names if not _mentions(page, name)]


def _settings(prefix: str, name: str, classes: dict[str, ast.ClassDef]) -> Iterator[str]:
    """Yield the variables of the settings in a class, and in those of its groups."""
    for node in classes[name].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            variable, kind = prefix + node.target.id.upper(), ast.unparse(node.annotation).rpartition(".")[2]
            yield from _settings(f"{variable}__", kind, classes) if kind in classes else [variable]


def check_reference(root: Path) -> list[str]:
    """Every public name has its place in the reference."""
    pages = "\n".join(_read(path) for path in sorted((root / "docs" / "reference").rglob("*.md")))
    names = _public_names(_parse(root / PACKAGE / "__init__.py"))
    if not names:
        return ["src/recollect/__init__.py has no __all__"]
    return [f"docs/reference does not mention {name}" for name in names if not _mentions(pages, name)]


CODE_RULES: tuple[Rule, ...] = (
    *(check_sizes, check_docstrings, check_words, check_rooms, check_cycles, check_loads),
    *(check_class_names, check_test_names, check_folders),
    *(check_sql, check_channels, check_purity, check_integrations),
)
DOCS_RULES: tuple[Rule, ...] = (check_glossary, check_decisions, check_settings, check_reference)


TELLING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Call, ast.Attribute),
    *(ast.Import, ast.ImportFrom, ast.arg, ast.AnnAssign),
)
"""The nodes that have something to say to a rule."""


@dataclass(slots=True)
class Learned:
    """The facts of a module for the rules; each text is parsed once, even if several files have it."""

    docstring: str
    oversizes: list[str] = field(default_factory=list)
    crowds: list[str] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    impurities: list[str] = field(default_factory=list)
    imported: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    """Modules of Recollect, and the names imported from them."""
    loaded: list[str] = field(default_factory=list)
    """Late imports; empty if no constant names the module."""
    classes: list[str] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)

    def take(self, node: ast.AST) -> None:
        """Record the facts of one node."""
        self.oversizes += _oversizes(node)
        self.impurities += _impurities(node)
        self.imported += _imported(node)
        self.named += _named(node)
        self.loaded += _loaded(node)
        self.classes += [node.name] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _parameters(node) > PARAMETERS:
            self.crowds.append(f"{node.lineno} {node.name} takes {_parameters(node)} parameters")
        if name := _defined(node):
            self.defined |= _parts(name)


def _learn(path: Path) -> Learned:
    return _learn_text(_read(path))


@cache
def _learn_text(text: str) -> Learned:
    tree = ast.parse(text)
    learned = Learned(ast.get_docstring(tree) or "")
    nodes = list(ast.walk(tree))
    # Docstrings and remarks mean nothing to the program.
    remarks = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, TELLING):
            learned.take(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in remarks:
            learned.queries += [node.lineno] if SQL.match(node.value) else []
    return learned


def _files(root: Path, *tops: str, suffix: str = ".py") -> Iterator[Path]:
    for top in tops:
        yield from (path for path in _walk(root / top) if path.suffix == suffix)


def _walk(top: Path) -> list[Path]:
    """List all files and folders; what tools have put there, such as environments, is not even looked into."""
    found = []
    for place, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in FOREIGN]
        found += [Path(place, name) for name in (*folders, *files)]
    return sorted(found)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        within = node.module or ""
        return [f"{within}.{alias.name}" for alias in node.names] if within == "recollect" else [within]
    return []


def _named(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names if (node.module or "").startswith("recollect")]
    return [name for name in _imported(node) if name.startswith("recollect")]


def _loaded(node: ast.AST) -> list[str]:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "load"):
        return []
    return [str(node.args[0].value) if node.args and isinstance(node.args[0], ast.Constant) else ""]


def _module(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root / "src").with_suffix("").parts).removesuffix(".__init__")


def _nearest(name: str, modules: Collection[str]) -> str:
    """Return the module that a name is or belongs to."""
    while name not in modules and "." in name:
        name = name.rpartition(".")[0]
    return name


def _impurities(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and _last_name(node.func) in IMPURE_CALLS:
        yield f"{node.lineno} calls {_last_name(node.func)}()"
    if isinstance(node, ast.Attribute) and node.attr == "random":
        yield f"{node.lineno} draws lots"


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _oversizes(node: ast.AST) -> Iterator[str]:
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    if isinstance(node, functions):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES:
            yield f"{node.lineno} {node.name} has {lines} lines, at most {FUNCTION_LINES}"
    if isinstance(node, ast.ClassDef):
        methods = [part for part in node.body if isinstance(part, functions) and not part.name.startswith("__")]
        if len(methods) > METHODS:
            yield f"{node.lineno} {node.name} has {len(methods)} methods, at most {METHODS}"


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    options = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    given = [*node.args.posonlyargs, *node.args.args, *(name for name, usual in options if usual is None)]
    return len([argument for argument in given if argument.arg not in {"self", "cls"}])


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _parts(name: str) -> set[str]:
    """Split a name: `ConceptNode` and `concept_node` are both concept and node."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return set(spaced.lower().split("_"))


@cache
def _lost_words(text: str, suffix: str) -> list[tuple[int, str]]:
    lines = enumerate(text.splitlines(), start=1)
    found = [(number, word[0]) for number, line in lines for word in ANYWHERE.finditer(line)]
    if not any(name in text.lower() for name in LOST_NAMES):
        return found
    names = _sql_names(text) if suffix == ".sql" else _python_names(text)
    return found + [(line, name) for line, name in names if _parts(name) & LOST_NAMES]


def _python_names(text: str) -> list[tuple[int, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.NAME]


def _sql_names(text: str) -> list[tuple[int, str]]:
    bare = [re.sub(r"--.*|'[^']*'|\bpg_\w+", "", line) for line in text.splitlines()]
    return [(number, name) for number, line in enumerate(bare, start=1) for name in re.findall(r"\w+", line)]


def _defined(node: ast.AST) -> str:
    """Return the name that a node introduces."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    return node.target.id if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else ""


def _public_names(tree: ast.Module) -> list[str]:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return [str(name) for name in ast.literal_eval(node.value)]  # type: ignore[attr-defined]
    return []
