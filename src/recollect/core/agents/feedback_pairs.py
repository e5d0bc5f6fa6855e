"""Shared parts of learning from marked hits: splitting, pairs, and quality of fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Protocol, TypeAlias, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.errors import InvalidInputError
from recollect.models.agents import FitQuality, Tuning, TuningTarget

Numbers = NDArray[np.float64]
MIN_RECALLS = 10
"""With fewer recalls there is too little data to learn from and to check against."""
HELD_OUT = 0.3
MAX_PAIRS = 100
"""Maximum number of pairs per recall. 200 marked hits make 10,000 pairs, which add little information to 100 pairs."""
STANDARD_ERRORS = 2.0


class RecallFeedback(Protocol):
    """One recall whose hits were marked."""

    @property
    def recall_id(self) -> UUID:
        """Return the ID of the recall."""
        ...

    @property
    def useful(self) -> NDArray[np.bool_]:
        """Return for every marked hit whether it was useful."""
        ...


AnyMarked = TypeVar("AnyMarked", bound=RecallFeedback)
Score: TypeAlias = Callable[[AnyMarked], Numbers]
"""Scores the marked hits of a recall with a weighting."""


def choose_usable(judged: Iterable[AnyMarked]) -> list[AnyMarked]:
    """Choose recalls with both useful and useless hits."""
    return [recall for recall in judged if recall.useful.any() and not recall.useful.all()]


def require_enough(usable: Sequence[RecallFeedback]) -> None:
    """Refuse to learn from fewer than MIN_RECALLS recalls."""
    if len(usable) < MIN_RECALLS:
        raise InvalidInputError(
            f"tuning needs {MIN_RECALLS} recalls with useful and useless marks; there are {len(usable)}"
        )


def split(judged: Sequence[AnyMarked]) -> tuple[list[AnyMarked], list[AnyMarked]]:
    """Hold out a part, chosen by a hash of the recall's ID: random, but reproducible."""
    shuffled = sorted(judged, key=lambda recall: sha256(recall.recall_id.bytes).digest())
    held = round(len(shuffled) * HELD_OUT)
    return shuffled[:held], shuffled[held:]


def pair_up(useful: NDArray[np.bool_], values: Numbers) -> tuple[Numbers, Numbers]:
    """Subtract the values of useless hits from those of useful ones.

    Also return the weight of each pair; the weights add up to 1.
    """
    pairs = values[useful][:, None, :] - values[~useful][None, :, :]
    few = pairs.reshape(-1, values.shape[1])
    few = few[:: -(-len(few) // MAX_PAIRS)]
    return few, np.full(len(few), 1.0 / len(few))


def pair_all(paired: Iterable[tuple[NDArray[np.bool_], Numbers]]) -> tuple[Numbers, Numbers]:
    """Pair the hits of all recalls; every recall has the same total weight."""
    every = [pair_up(useful, values) for useful, values in paired]
    return np.concatenate([pairs for pairs, _ in every]), np.concatenate([counts for _, counts in every])


def descend(
    start: Numbers, loss_at: Callable[[Numbers], float], find_step: Callable[[Numbers], Numbers], most_steps: int
) -> tuple[Numbers, float]:
    """Minimize a loss by steps, and return the final point and its loss.

    Each step is halved until the loss does not increase. The loop ends if a step does not reduce the loss.
    """
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
    """Return how far the mean of these changes can be from zero by chance."""
    return float(STANDARD_ERRORS * changes.std(ddof=1) / np.sqrt(len(changes)))


def is_better(before: FitQuality, after: FitQuality, margin: float) -> bool:
    """Return whether the fit improved.

    The share of ordered pairs must grow by more than the margin, and the first useful hit must not rank lower.
    """
    return after.accuracy - before.accuracy > margin and after.reciprocal_rank >= before.reciprocal_rank


def compare(
    of: TuningTarget,
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


def to_fit(ordered: tuple[Numbers, Numbers]) -> FitQuality:
    """Return how well marked hits are ordered, averaged over recalls."""
    accuracies, reciprocals = ordered
    return FitQuality(float(accuracies.mean()), float(reciprocals.mean()))


def order(judged: Sequence[RecallFeedback], scores: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    """Return for each recall the share of ordered pairs (a tie counts half) and the reciprocal rank."""
    accuracies, reciprocals = np.zeros(len(judged)), np.zeros(len(judged))
    for position, (recall, scored) in enumerate(zip(judged, scores, strict=True)):
        useful, useless = scored[recall.useful], scored[~recall.useful]
        margins = useful[:, None] - useless[None, :]
        accuracies[position] = (margins > 0).mean() + (margins == 0).mean() / 2
        ahead = useless - useful.max()
        reciprocals[position] = 1.0 / (1.0 + (ahead > 0).sum() + (ahead == 0).sum() / 2)
    return accuracies, reciprocals
