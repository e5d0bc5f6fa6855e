"""Pulled models: one folder each, with a record of its files; `pull` fills it, `use` pins it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from recollect.core.text.terms import has_ideographs
from recollect.errors import SetupError
from recollect.llm.local.encoder import Encoder, EncoderTraits, open_session
from recollect.llm.local.gloss.dictionary import default_cache, write_whole
from recollect.llm.local.layout import (
    CONFIG,
    GRAPHS,
    OPTIONAL,
    TOKENIZER,
    Layout,
    load_known,
    read_json,
    read_layout,
)
from recollect.llm.local.minilm import reads_words
from recollect.llm.local.sources import FolderSource, HubSource, ModelSource, digest, fetch, read_text
from recollect.loading import load
from recollect.models.outside import KnownModel, ModelFile, ModelFiles

RECORD = "recollect.json"
CARD = "README.md"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
LICENCE = re.compile(r"^---\n(?:.*\n)*?license:\s*['\"]?([\w.+-]+)", re.MULTILINE)
UNSTATED = "not stated"
BRANCHES = ("main", "master")
CHARACTERS_PER_TOKEN = 32
"""Text beyond this many characters per token is not read, to limit the cost of huge texts."""
SAID = frozenset({CONFIG, *OPTIONAL})
"""Files whose content is part of the layout."""
PROBE = "What did Ann buy at the market?"


@dataclass(frozen=True, slots=True)
class InstalledModels:
    """The folder of pulled models, and the hub for further ones."""

    folder: Path
    hub: str

    def list(self) -> Sequence[ModelFiles]:
        """List the pulled models."""
        records = sorted(self.folder.glob(f"*/{RECORD}"))
        return [read_record(path) for path in records]

    def known(self) -> Sequence[KnownModel]:
        """List the models that Recollect knows by name."""
        return list(load_known().values())

    def find_model(self, name: str) -> ModelFiles:
        """Return a pulled model; raise if it is missing, or if its fingerprint differs."""
        bare, _, pin = name.partition("@")
        path = self.folder / check_name(bare) / RECORD
        if not path.exists():
            raise SetupError(f"Model {bare} is not installed. Run: recollect admin model pull {bare}")
        model = read_record(path)
        if pin and (found := self.fingerprint(model)) != name:
            raise SetupError(f"The installed model is {found}, not {name}. Pull it again from its original source.")
        return model

    def plan(self, name: str, source: str = "", repository: str = "", revision: str = "") -> ModelFiles:
        """Return the files of a model with places, sizes, checksums and license, without downloading them."""
        known = load_known().get(name)
        if known is None and not (repository or REPOSITORY.fullmatch(name)) and not (source and Path(source).is_dir()):
            raise SetupError(f"Unknown model {name}. Use OWNER/NAME, or see `recollect admin model list`.")
        place = self._open(source, repository or (known.repository if known else name), revision, known)
        files = list_files(place, known)
        bare = check_name(name.rpartition("/")[2])
        pinned = self._pins(bare, known)
        checked = tuple(expect(each, pinned.get(each.path, "")) for each in files)
        licence = known.licence if known else find_licence(read_text(place, CARD))
        repo = repository or (known.repository if known else name)
        return ModelFiles(bare, repo, place.place, place.revision, licence, checked)

    def pull(self, plan: ModelFiles, report: Callable[[str, int], None]) -> ModelFiles:
        """Download the files of a plan; complete files are not downloaded again."""
        folder = self.folder / plan.name
        source = open_source(plan.source, plan.repository, plan.revision)
        files = tuple(fetch(source, each, folder, partial(report, each.path)) for each in plan.files)
        pinned = (folder / RECORD).exists() and read_record(folder / RECORD).pinned
        pulled = replace(plan, files=files, pinned=pinned)
        write_record(folder / RECORD, pulled)
        return pulled

    async def use(self, name: str) -> str:
        """Verify a model, run it once, and pin its files; return the name for the settings."""
        model = self.find_model(name)
        for each in model.files:
            if digest(self.folder / model.name / each.path) != each.sha256:
                raise SetupError(f"{each.path} of {model.name} has changed since it was pulled; pull it again.")
        encoder = self.open(model)
        try:
            await encoder.embed_cues([PROBE])
        finally:
            await encoder.close()
        write_record(self.folder / model.name / RECORD, replace(model, pinned=True))
        return encoder.model

    def open(self, model: ModelFiles, threads: int = 0) -> Encoder:
        """Open a pulled model."""
        folder, known = self.folder / model.name, load_known().get(model.name)
        for each in model.files:
            if not (file := folder / each.path).is_file() or file.stat().st_size != each.size:
                raise SetupError(
                    f"{each.path} of {model.name} is incomplete; run: recollect admin model pull {model.name}"
                )
        layout = read_layout(read_json(folder), known)
        repair = f"run: recollect admin model pull {model.name}"
        session = open_session(folder / find_graph(model), threads, "models", repair)
        traits = EncoderTraits(
            name_space(model, layout),
            layout.dimensions,
            READERS.get(known.languages if known else "", reads_all),
            layout.pooling,
            layout.padding,
            layout.cue_prefix,
            layout.memory_prefix,
        )
        return Encoder(session, LibraryPieces.open(folder / TOKENIZER, layout.tokens), traits)

    def fingerprint(self, model: ModelFiles) -> str:
        """Return the name of a pulled model's embedding space."""
        return name_space(model, read_layout(read_json(self.folder / model.name), load_known().get(model.name)))

    def _open(self, source: str, repository: str, revision: str, known: KnownModel | None) -> ModelSource:
        """Open the source at an existing revision."""
        wanted = revision or (known.revision if known else "")
        for branch in (wanted,) if wanted else BRANCHES:
            opened = open_source(source or self.hub, repository, branch)
            if opened.stat_file(CONFIG) is not None:
                return opened
        raise SetupError(f"{source or self.hub} has no {CONFIG} of {repository}.")

    def _pins(self, name: str, known: KnownModel | None) -> dict[str, str]:
        """Return the expected checksums: from the table, and from a model that is in use."""
        path = self.folder / name / RECORD
        record = read_record(path) if path.exists() else None
        used = {each.path: each.sha256 for each in record.files} if record and record.pinned else {}
        return used | dict(known.sha256 if known else {})


class LibraryPieces:
    """Converts texts to token IDs with the model's own tokenizer."""

    def __init__(self, tokenizer: Any, room: int) -> None:  # noqa: ANN401 - the library has no types
        tokenizer.no_padding()
        tokenizer.enable_truncation(room)
        self._tokenizer, self._room = tokenizer, room

    @classmethod
    def open(cls, path: Path, room: int) -> LibraryPieces:
        """Open a tokenizer's file."""
        tokenizers = load("tokenizers", "models")
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)), room)
        except Exception as error:
            # The library raises plain exceptions for a damaged file.
            raise SetupError(f"{path} cannot be read; pull the model again.") from error

    def encode(self, text: str) -> list[int]:
        """Return the token IDs of the text's beginning."""
        # A lone surrogate is not a valid character: it is removed.
        plain = text[: self._room * CHARACTERS_PER_TOKEN].encode("utf-8", "ignore").decode()
        ids: list[int] = self._tokenizer.encode(plain).ids
        return ids


def reads_all(text: str) -> bool:  # noqa: ARG001 - required by the protocol
    """Return that any text is readable."""
    return True


READERS: dict[str, Callable[[str], bool]] = {"en": reads_words, "zh": has_ideographs}
"""Whether models of one language can read a text."""


def open_models(folder: Path | None, hub: str) -> InstalledModels:
    """Return the models of a folder, or of the default one."""
    return InstalledModels(folder or default_cache() / "models", hub)


def open_source(source: str, repository: str, revision: str) -> ModelSource:
    """Open a folder or a hub."""
    return FolderSource(Path(source)) if Path(source).is_dir() else HubSource(source, repository, revision)


def list_files(source: ModelSource, known: KnownModel | None) -> list[ModelFile]:
    """List the files of a model: required files, its graph, and optional files."""
    graphs = (known.graph,) if known else GRAPHS
    graph = next((found for path in (*graphs, *GRAPHS) if (found := source.stat_file(path))), None)
    more = known.more if known else (f"{graph.path}_data",) if graph else ()
    needed = {path: source.stat_file(path) for path in (CONFIG, TOKENIZER, *(known.more if known else ()))}
    missing = [path for path, found in needed.items() if found is None] + ([] if graph else ["model.onnx"])
    if missing:
        raise SetupError(f"{source.place} has no {' and no '.join(missing)} of this model.")
    others = (source.stat_file(path) for path in (*OPTIONAL, *more) if path not in needed)
    there = (each for each in (*needed.values(), *others, graph) if each is not None)
    # The largest files come last, so that an interruption repeats as little as possible.
    return sorted(there, key=lambda each: each.size or 0)


def find_graph(model: ModelFiles) -> str:
    """Return the path of a model's graph."""
    return next(each.path for each in model.files if each.path.endswith(".onnx"))


def expect(file: ModelFile, sha256: str) -> ModelFile:
    """Return a file with the required checksum; refuse a file that states another one."""
    if sha256 and file.sha256 not in ("", sha256):
        raise SetupError(f"{file.path} is refused: its checksum is {file.sha256}, and {sha256} was expected.")
    return replace(file, sha256=sha256 or file.sha256)


def find_licence(card: str) -> str:
    """Return the license that a model's card states in its front matter."""
    stated = LICENCE.match(card)
    return stated[1] if stated else UNSTATED


def name_space(model: ModelFiles, layout: Layout) -> str:
    """Return the name of the embedding space; it depends on every byte and rule that affects vectors."""
    bytes_ = sorted((Path(each.path).name, each.sha256) for each in model.files if each.path not in SAID)
    said = [bytes_, asdict(layout)]
    return f"{model.name}@{hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:12]}"


def check_name(name: str) -> str:
    """Refuse a name that could lead outside the folder."""
    if not NAME.fullmatch(name):
        raise SetupError(f"{name!r} is not the name of a model.")
    return name


def read_record(path: Path) -> ModelFiles:
    """Parse the record of a model's files."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return ModelFiles(**said | {"files": tuple(ModelFile(**each) for each in said["files"])})
    except (ValueError, TypeError, KeyError):
        raise SetupError(f"{path} is damaged; pull the model again.") from None


def write_record(path: Path, model: ModelFiles) -> None:
    """Write the record of a model's files."""
    write_whole(path, (json.dumps(asdict(model), indent=1, ensure_ascii=False) + "\n").encode())
