"""Write objects: a header, then zstd; encrypted in pieces with AES-256-GCM if there is a key.

Each piece is bound to the header, to its position and to whether it is the last: no piece can be changed, moved or left
out.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from pydantic import SecretStr

from recollect.errors import ColdStorageError, SetupError
from recollect.loading import load

MAGIC = b"recollect-cold\n"
VERSION = 1
LEVEL = 9
"""The zstd compression level; higher levels take far longer and save little."""
PIECE = 1 << 20
KEY_BYTES, NONCE_BYTES, SALT_BYTES = 32, 12, 16
DAMAGED = "An object in object storage is damaged ({}). Nothing was changed."
OTHER_MASTER = (
    "RECOLLECT_COLD__KEY does not match. Set it to the key in use, or set the old key as RECOLLECT_COLD__PREVIOUS_KEY "
    "and run `recollect admin cold rewrap`."
)


@dataclass(frozen=True, slots=True)
class SealingKey:
    """A tenant's key and its version; version 0 does not encrypt."""

    version: int = 0
    key: bytes = b""


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The operator's key that wraps the tenants' keys, and the previous one."""

    current: bytes = b""
    before: bytes = b""

    def wrap(self, tenant_id: int, key: SealingKey) -> tuple[bytes, str]:
        """Wrap a tenant's key; return it with the fingerprint of the master key."""
        nonce = os.urandom(NONCE_BYTES)
        wrapped = cipher(self.current).encrypt(nonce, key.key, name_key(tenant_id, key.version))
        return nonce + wrapped, fingerprint(self.current)

    def unwrap(self, tenant_id: int, version: int, wrapped: bytes, wrapped_by: str) -> SealingKey:
        """Unwrap a tenant's key by the master key that wrapped it."""
        master = next((each for each in (self.current, self.before) if each and fingerprint(each) == wrapped_by), b"")
        if not master:
            raise ColdStorageError(OTHER_MASTER)
        try:
            opened = cipher(master).decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], name_key(tenant_id, version))
        except refusals():
            raise ColdStorageError(OTHER_MASTER) from None
        return SealingKey(version, opened)


def read_master(written: SecretStr) -> bytes:
    """Decode a master key: 32 bytes in base64, or nothing."""
    text = written.get_secret_value()
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b"not one"
    if key and len(key) != KEY_BYTES:
        raise SetupError("RECOLLECT_COLD__KEY must be 32 bytes in base64, as from `openssl rand -base64 32`.")
    return key


def fingerprint(key: bytes) -> str:
    """Return a fingerprint that identifies a key without revealing it."""
    return hashlib.sha256(b"recollect-master" + key).hexdigest()[:16]


def name_key(tenant_id: int, version: int) -> bytes:
    """Return the data that a wrapped key is bound to."""
    return f"recollect-tenant-key:{tenant_id}:{version}".encode()


def cipher(key: bytes) -> Any:  # noqa: ANN401 - of an extra
    """Create the cipher of a key."""
    return load("cryptography.hazmat.primitives.ciphers.aead", "cold").AESGCM(key)


def refusals() -> Any:  # noqa: ANN401 - of an extra
    """Return the error that the cipher raises for data that it did not encrypt."""
    return load("cryptography.exceptions", "cold").InvalidTag


class SealedWriter:
    """Writes an object from start to end, and computes its hash."""

    def __init__(self, file: BinaryIO, scope_id: int, key: SealingKey) -> None:
        self._file, self._hash = file, hashlib.sha256()
        self.bytes = self._number = 0
        self._held = bytearray()
        salt = os.urandom(SALT_BYTES) if key.version else b""
        self._seal: Callable[[bytes, bytes, bytes], bytes] | None = None
        if key.version:
            self._seal = cipher(derive_key(key, salt)).encrypt
        head = {"version": VERSION, "scope": scope_id, "key": key.version, "salt": salt.hex()}
        self._head = MAGIC + json.dumps(head).encode() + b"\n"
        self._put(self._head)
        self._packing = load("zstandard", "cold").ZstdCompressor(level=LEVEL).compressobj()

    def write(self, data: bytes) -> int:
        """Add data."""
        self._take(self._packing.compress(bytes(data)))
        return len(data)

    def flush(self) -> None:
        """Do nothing: `finish_object` writes the rest."""

    def finish_object(self) -> str:
        """End the object, and return the hash of its bytes."""
        self._take(self._packing.flush())
        self._end_piece(last=True)
        return self._hash.hexdigest()

    def _take(self, packed: bytes) -> None:
        self._held += packed
        while len(self._held) > PIECE:
            self._end_piece(last=False)

    def _end_piece(self, *, last: bool) -> None:
        piece = bytes(self._held[:PIECE])
        del self._held[:PIECE]
        if self._seal is not None:
            piece = self._seal(nonce(self._number, last=last), piece, self._head)
            self._put(len(piece).to_bytes(4))
        self._put(piece)
        self._number += 1

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.bytes += len(data)


def open_sealed(file: BinaryIO, scope_id: int, find_key: Callable[[int], SealingKey], unpacked: BinaryIO) -> None:
    """Decrypt and unpack a scope's object into another file; raise ColdStorageError if it is damaged."""
    file.seek(0)
    head = file.readline(len(MAGIC)) + file.readline(1000)
    try:
        said: Any = json.loads(head.removeprefix(MAGIC))
        version, scope, salt = said["version"], said["scope"], bytes.fromhex(said["salt"])
        key = find_key(said["key"])
    except (ValueError, KeyError, TypeError):
        raise ColdStorageError(DAMAGED.format("its header cannot be read")) from None
    if version != VERSION or scope != scope_id:
        raise ColdStorageError(DAMAGED.format(f"format {version}, scope {scope}"))
    pieces = partial(read_sealed, file, head, salt, key) if key.version else partial(iter_plain, file)
    try:
        packed = io.BufferedReader(PieceReader(pieces()))
        load("zstandard", "cold").ZstdDecompressor().copy_stream(packed, unpacked)
    except (refusals(), EOFError, load("zstandard", "cold").ZstdError) as problem:
        raise ColdStorageError(DAMAGED.format(type(problem).__name__)) from None
    unpacked.seek(0)


class PieceReader(io.RawIOBase):
    """A readable file made of pieces."""

    def __init__(self, pieces: Any) -> None:  # noqa: ANN401 - an iterator of bytes
        self._pieces, self._held = pieces, b""

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any buffer
        """Read as many bytes as fit into the buffer."""
        if not self._held:
            self._held = next(self._pieces, b"")
        taken, self._held = self._held[: len(buffer)], self._held[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def iter_plain(file: BinaryIO) -> Any:  # noqa: ANN401 - an iterator of bytes
    """Iterate over pieces that are not encrypted."""
    return iter(partial(file.read, PIECE), b"")


def read_sealed(file: BinaryIO, head: bytes, salt: bytes, key: SealingKey) -> Any:  # noqa: ANN401 - an iterator
    """Iterate over encrypted pieces, each bound to the header and to its position."""
    opened, number, size = cipher(derive_key(key, salt)), 0, file.read(4)
    while size:
        piece = file.read(int.from_bytes(size))
        size = file.read(4)
        yield opened.decrypt(nonce(number, last=not size), piece, head)
        number += 1
    if not number:
        raise EOFError


def derive_key(key: SealingKey, salt: bytes) -> bytes:
    """Derive the key of one object. Each object has a different key, so no nonce is used twice."""
    return hmac.digest(key.key, b"recollect-object" + salt, "sha256")


def nonce(number: int, *, last: bool) -> bytes:
    """Build the nonce of a piece from its position."""
    return number.to_bytes(NONCE_BYTES - 1) + bytes([last])
