"""What learning from marked hits has in common, whichever weights are learned: parts, pairs, and how well they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Protocol, TypeAlias, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.errors import InvalidInputError
from recollect.models.agents import Fit, Tuned, Tuning

Numbers = NDArray[np.float64]
FEWEST_RECALLS = 10
"""With fewer there is too little to learn from and to check against."""
HELD_OUT = 0.3
MOST_PAIRS = 100
"""Taken from one recall: two hundred marked hits make ten thousand pairs, which say little more than a hundred."""
STANDARD_ERRORS = 2.0


class Marked(Protocol):
    """One recall whose hits were marked."""

    @property
    def recall_id(self) -> UUID:
        """Name the recall."""
        ...

    @property
    def useful(self) -> NDArray[np.bool_]:
        """Tell of every marked hit whether it was of use."""
        ...


AnyMarked = TypeVar("AnyMarked", bound=Marked)
Score: TypeAlias = Callable[[AnyMarked], Numbers]
"""How a weighting scores the marked hits of a recall."""


def choose_usable(judged: Iterable[AnyMarked]) -> list[AnyMarked]:
    """Choose recalls with both useful and useless hits."""
    return [recall for recall in judged if recall.useful.any() and not recall.useful.all()]


def require_enough(usable: Sequence[Marked]) -> None:
    """Refuse to learn from too little."""
    if len(usable) < FEWEST_RECALLS:
        raise InvalidInputError(
            f"tuning needs {FEWEST_RECALLS} recalls with useful and useless marks; there are {len(usable)}"
        )


def split(judged: Sequence[AnyMarked]) -> tuple[list[AnyMarked], list[AnyMarked]]:
    """Hold a part back, chosen by a hash of the recall's id: random, but always the same."""
    shuffled = sorted(judged, key=lambda recall: sha256(recall.recall_id.bytes).digest())
    held = round(len(shuffled) * HELD_OUT)
    return shuffled[:held], shuffled[held:]


def pair_up(useful: NDArray[np.bool_], values: Numbers) -> tuple[Numbers, Numbers]:
    """Subtract the values of useless hits from those of useful ones, and say what each pair counts: together 1."""
    pairs = values[useful][:, None, :] - values[~useful][None, :, :]
    few = pairs.reshape(-1, values.shape[1])
    few = few[:: -(-len(few) // MOST_PAIRS)]
    return few, np.full(len(few), 1.0 / len(few))


def pair_all(paired: Iterable[tuple[NDArray[np.bool_], Numbers]]) -> tuple[Numbers, Numbers]:
    """Pair the hits of all recalls; every recall counts the same."""
    every = [pair_up(useful, values) for useful, values in paired]
    return np.concatenate([pairs for pairs, _ in every]), np.concatenate([counts for _, counts in every])


def descend(
    start: Numbers, loss_at: Callable[[Numbers], float], find_step: Callable[[Numbers], Numbers], most_steps: int
) -> tuple[Numbers, float]:
    """Follow steps downhill, each halved until the loss is no greater, until they gain nothing; give the loss, too."""
    point, loss = start.copy(), loss_at(start)
    for _ in range(most_steps):
        step = find_step(point)
        length = 1.0
        while (lower := loss_at(point + length * step)) > loss and length > 1e-6:
            length /= 2
        if loss - lower <= 1e-9 * (1 + loss):
            break
        point, loss = point + length * step, lower
    return point, loss


def chance_alone(changes: Numbers) -> float:
    """Say how far from zero the mean of these changes can be by chance."""
    return float(STANDARD_ERRORS * changes.std(ddof=1) / np.sqrt(len(changes)))


def is_better(before: Fit, after: Fit, margin: float) -> bool:
    """Tell whether more pairs are in order than chance explains, and the first useful hit is no farther down."""
    return after.accuracy - before.accuracy > margin and after.reciprocal_rank >= before.reciprocal_rank


def compare(
    of: Tuned,
    weights: tuple[Mapping[str, float], Mapping[str, float]],
    parts: tuple[Sequence[AnyMarked], Sequence[AnyMarked]],
    scores: tuple[Score[AnyMarked], Score[AnyMarked]],
) -> Tuning:
    """Compare two weightings, before and after, on both parts of the feedback: training and held out."""
    training, held_out = parts
    learned = [order(training, [score(recall) for recall in training]) for score in scores]
    held = [order(held_out, [score(recall) for recall in held_out]) for score in scores]
    fits = to_fit(held[0]), to_fit(held[1])
    margin = chance_alone(held[1][0] - held[0][0])
    return Tuning(
        of=of,
        before=weights[0],
        after=weights[1],
        training=(to_fit(learned[0]), to_fit(learned[1])),
        held_out=fits,
        recalls=(len(training), len(held_out)),
        margin=margin,
        recommended=is_better(*fits, margin),
    )


def to_fit(ordered: tuple[Numbers, Numbers]) -> Fit:
    """Say how well marked hits are ordered, on average over recalls."""
    accuracies, reciprocals = ordered
    return Fit(float(accuracies.mean()), float(reciprocals.mean()))


def order(judged: Sequence[Marked], scores: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    """Give for each recall the share of pairs in order, a tie being half right, and the reciprocal rank."""
    accuracies, reciprocals = np.zeros(len(judged)), np.zeros(len(judged))
    for position, (recall, scored) in enumerate(zip(judged, scores, strict=True)):
        useful, useless = scored[recall.useful], scored[~recall.useful]
        margins = useful[:, None] - useless[None, :]
        accuracies[position] = (margins > 0).mean() + (margins == 0).mean() / 2
        ahead = useless - useful.max()
        reciprocals[position] = 1.0 / (1.0 + (ahead > 0).sum() + (ahead == 0).sum() / 2)
    return accuracies, reciprocals
