"""Encode the terms and vectors of many memories as binary COPY data: all at once, which is far cheaper."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.core.text.terms import SLOTS as LAST_SLOT
from recollect.core.text.terms import TERM_BITS, scope_bits

SLOTS = 1_000_000_000
"""The dimensions of the sparse vectors in the database."""
BIGINT_OID = 20
SLOT_BITS = 30
Numbers = NDArray[np.int64]


def write_terms(scope_id: int, weights: Sequence[Mapping[int, float]]) -> list[tuple[bytes, bytes]]:
    """Encode the terms of each memory, given as weights by fingerprint: sorted hashes, and a sparse vector."""
    counts = np.fromiter(map(len, weights), np.int64, len(weights))
    total = int(counts.sum())
    fingerprints = np.fromiter(chain.from_iterable(weights), np.uint64, total)
    values = np.fromiter(chain.from_iterable(each.values() for each in weights), np.float64, total)
    owners = np.repeat(np.arange(len(weights), dtype=np.int64), counts)
    terms = (fingerprints & np.uint64((1 << TERM_BITS) - 1)).astype(np.int64)
    # All hashes of a scope start with the same bits, so terms and hashes have the same order.
    ordered = np.sort(owners << TERM_BITS | terms) & ((1 << TERM_BITS) - 1)
    hashes = ordered | scope_bits(scope_id)
    slots = owners << SLOT_BITS | (fingerprints % np.uint64(LAST_SLOT)).astype(np.int64)
    return list(zip(write_bigints(hashes, counts), write_weights(slots, values, len(weights)), strict=True))


def write_weights(slots: Numbers, values: NDArray[np.float64], count: int) -> list[bytes]:
    """Encode sparse vectors from slots with their owner's number in the high bits; the last of equal slots counts."""
    order = np.argsort(slots, kind="stable")
    slots, values = slots[order], values[order]
    last = np.ones(len(slots), bool)
    last[:-1] = slots[1:] != slots[:-1]
    slots, values = slots[last], values[last]
    return write_sparsevecs(slots & ((1 << SLOT_BITS) - 1), values, np.bincount(slots >> SLOT_BITS, minlength=count))


def write_bigints(values: Numbers, counts: Numbers) -> list[bytes]:
    """Write an int8[] for each count of values: one dimension counted from 1, or none when it is empty."""
    fields = np.empty(len(values), [("size", ">i4"), ("value", ">i8")])
    fields["size"], fields["value"] = 8, values
    empty = struct.pack(">iii", 0, 0, BIGINT_OID)
    heads = (struct.pack(">iiiii", 1, 0, BIGINT_OID, count, 1) if count else empty for count in counts.tolist())
    return [head + part for head, part in zip(heads, cut(fields, counts), strict=True)]


def write_sparsevecs(indices: Numbers, values: NDArray[np.float64], counts: Numbers) -> list[bytes]:
    """Write a sparsevec for each count of values, whose indices are sorted and counted from 0."""
    heads = (struct.pack(">iii", SLOTS, count, 0) for count in counts.tolist())
    parts = zip(heads, cut(indices.astype(">i4"), counts), cut(values.astype(">f4"), counts), strict=True)
    return [b"".join(each) for each in parts]


def cut(items: NDArray[Any], counts: Numbers) -> list[bytes]:
    """Cut an array into the bytes of each count of items."""
    data = items.tobytes()
    ends = [0, *(np.cumsum(counts) * items.itemsize).tolist()]
    return [data[start:end] for start, end in pairwise(ends)]


def write_vectors(rows: NDArray[np.float32], precision: str) -> list[bytes]:
    """Write halfvecs or vectors."""
    head = struct.pack(">hh", rows.shape[1], 0)
    numbers = rows.astype(">f2" if precision == "half" else ">f4")
    width, data = numbers.itemsize * rows.shape[1], numbers.tobytes()
    return [head + data[start : start + width] for start in range(0, len(data), width)]
