"""Exports that were changed: bombs, damaged rows, and harmless changes; all of them by a seed."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
import zlib

MB = 1_000_000
WILD = (
    None, True, False, 0, -1, 1, 2**31, 2**40, 2**63 - 1, 2**63, 10**400, 0.5, -1e308, 1e400, "", " ", "a", "a\nb",
    "\0", "\ud800", "x" * 3_000, "infinity", "-infinity", "now", "20000-01-01T00:00:00+00:00", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "2026-01-01T00:00:00", "2026-01-01", "00000000-0000-0000-0000-000000000000", "{}", "[]",
    "[1]", "\\x", "\\x00", "\\x34789c03000000000001", [], [None], [1], ["a"], [[]], [{}], {}, {"a": 1}, {"": None},
    {"a": {"b": [1]}}, {"type": "text"}, [{"type": "text", "text": 1}], [{"type": "boss"}], "user", "boss", "message",
    "fact", "past", "deleted", "enriched", "switched", "person", "NaN", "1e999",
)  # fmt: skip


def pack(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Pack files as an export."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method, compresslevel=9) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return file.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """Unpack an export."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def sign(files: dict[str, bytes], **more: object) -> dict[str, bytes]:
    """Write the manifest anew, as somebody would who knows the format."""
    manifest = json.loads(files["manifest.json"])
    for scope in manifest["scopes"]:
        for section in [*scope["sections"]]:
            data = files.get(f"{scope['folder']}/{section}.jsonl")
            if data is None:
                del scope["sections"][section]
            else:
                digest = hashlib.sha256(data).hexdigest()
                scope["sections"][section] = {"lines": data.count(b"\n"), "bytes": len(data), "sha256": digest}
    return {**files, "manifest.json": json.dumps(manifest | more).encode()}


def multiply(files: dict[str, bytes], scopes: int) -> dict[str, bytes]:
    """Make an export of many scopes, each like one of these under another name, in the order of an export."""
    manifest = json.loads(files["manifest.json"])
    many, listed = dict[str, bytes](), []
    for number, agent in enumerate(sorted(f"agent {each}" for each in range(scopes)), 1):
        given = manifest["scopes"][number % len(manifest["scopes"])]
        listed.append(given | {"folder": str(number), "agent": agent})
        for name in given["sections"]:
            many[f"{number}/{name}.jsonl"] = files[f"{given['folder']}/{name}.jsonl"]
    return many | {"manifest.json": json.dumps(manifest | {"scopes": listed}).encode()}


def manifest_of(sections: dict[str, bytes], folder: str = "1") -> bytes:
    """Write a manifest of one scope with these sections."""
    held = {name: {"lines": 0, "bytes": 0, "sha256": ""} for name in sections}
    scope = {"folder": folder, "agent": "ada", "user": "li", "sections": held}
    return json.dumps({"format": "recollect-export", "version": 1, "spaces": [], "scopes": [scope]}).encode()


def of_section(name: str, data: bytes, padding: int = 0) -> bytes:
    """Pack one section, behind bytes that do not shrink."""
    files = {f"1/{name}.jsonl": data, "manifest.json": manifest_of({name: data})}
    return random.Random(7).randbytes(padding) + pack(sign(files))


def make_bomb(base: bytes, seed: int) -> bytes:
    """Make an upload that costs far more than it weighs."""
    chance = random.Random(seed)
    size = chance.randrange(4, 40) * MB
    many = b'{"id":[' + b"{}," * (size // 3) + b"{}]}\n"
    files = unpack(base)
    section = chance.choice([name for name in files if name.endswith(".jsonl")])
    row = json.loads(files[section].splitlines()[0])
    before = b'{"format":"recollect-export","version":1,"spaces":[],'
    deep = min(size, 8 * MB) // 2
    hexed = "\\x34" + zlib.compress(bytes(size * 4)).hex()
    recalls = [name for name in files if name.endswith("recalls.jsonl")]
    kept = {**json.loads(files[recalls[0]].splitlines()[0]), "inputs": hexed} if recalls else row
    return (
        lambda: pack({"manifest.json": before + b'"scopes":[' + b"{}," * (size // 3) + b"{}]}"}),
        lambda: of_section("memories/memories", many, len(many) // 25),
        lambda: of_section("memories/memories", many),
        lambda: pack({"manifest.json": b"[" * size}),
        lambda: pack({"manifest.json": before + b'"more":' + b"[" * deep + b"]" * deep + b',"scopes":[]}'}),
        lambda: pack({"manifest.json": before + b'"scopes":[],"more":"' + b"x" * size + b'"}'}),
        lambda: pack({f"{number}/memories/memories.jsonl": b"" for number in range(size // 400)} | files),
        lambda: pack(sign(files | {section: json.dumps({**row, "zzz": [{}] * (size // 4)}).encode() + b"\n"})),
        lambda: pack(sign(files | {section: b" " * size + b"\n" + files[section]})),
        lambda: pack(sign(files | {section: b"\n" * size + files[section]})),
        lambda: pack(sign(files | {recalls[0] if recalls else section: json.dumps(kept).encode() + b"\n"})),
        lambda: pack({"manifest.json": before + b'"scopes":' + str(10**4_000).encode() * (size // 4_000) + b"}"}),
        lambda: pack(files | {"manifest.json": b" " * size + files["manifest.json"]}, zipfile.ZIP_LZMA),
    )[seed % 13]()


def edit_rows(files: dict[str, bytes], name: str, edit) -> dict[str, bytes]:
    """Change the rows of one section."""
    rows = [json.loads(line) for line in files[name].splitlines()]
    return sign(files | {name: b"".join(json.dumps(row).encode() + b"\n" for row in edit(rows))})


def mutate_rows(rows: list[dict], action: int, chance: random.Random) -> list[dict]:
    """Change one row, or one field of all."""
    if not rows:
        return rows
    at, wild = chance.randrange(len(rows)), chance.choice(WILD)
    field, other = chance.choice([*rows[at]]), chance.choice(rows)
    if action == 1:
        return rows[:at] + rows[at + 1 :]
    if action == 2:
        return [*rows, rows[at]]
    if action == 3:
        return [{key: value for key, value in row.items() if key != field} for row in rows]
    given = {field: other.get(field) if action == 4 else wild}
    return [row | given if row is rows[at] or action > 8 else row for row in rows]


def mutate(base: bytes, seed: int) -> bytes:
    """Change one thing, or a few, of an export, and sign it again."""
    chance, files = random.Random(seed), unpack(base)
    sections = [name for name in files if name.endswith(".jsonl")]
    for _ in range(chance.choice((1, 1, 1, 2))):
        name = chance.choice(sections)
        if name not in files:
            continue
        action = chance.randrange(12)
        if action == 0:
            files = sign({other: data for other, data in files.items() if other != name})
            continue

        files = edit_rows(files, name, lambda rows: mutate_rows(rows, action, chance))  # noqa: B023 - used at once
    return pack(files)


def vary(base: bytes, seed: int) -> bytes:
    """Change an export in ways that change nothing that it says."""
    chance, files = random.Random(seed), unpack(base)
    indents = (None, 1, 4)

    def shuffled(value):
        if isinstance(value, dict):
            names = chance.sample([*value], len(value))
            return {name: shuffled(value[name]) for name in names}
        return value

    for name in [each for each in files if each.endswith(".jsonl")]:
        lines = []
        for line in files[name].splitlines():
            row = shuffled(json.loads(line))
            if chance.random() < 0.3:
                row[f"later_{chance.randrange(3)}"] = chance.choice((None, 1, "text", {"a": [1]}))
            separators = (chance.choice((",", ", ", " ,\t")), chance.choice((":", " : ")))
            blank = chance.choice(("", "", " ", "\n", "\r"))
            lines.append(blank + json.dumps(row, ensure_ascii=chance.random() < 0.5, separators=separators) + "\n")
        files[name] = "".join(lines).encode()
    manifest = shuffled(json.loads(sign(files)["manifest.json"]))
    manifest["later"] = chance.choice((None, 1, [1], {"a": {}}))
    manifest["scopes"][0]["later"] = 1.5
    files["manifest.json"] = json.dumps(manifest, indent=chance.choice(indents)).encode()
    names = chance.sample([*files], len(files))
    return pack({name: files[name] for name in names}, chance.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)))
