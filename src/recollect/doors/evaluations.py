"""Read the questions of an evaluation from JSON Lines, and write its report as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter, ValidationError

from recollect.errors import InvalidInputError
from recollect.models.evaluations import (
    ConfidenceInterval,
    Evaluation,
    EvaluationDifference,
    EvaluationQuestion,
    QualityMean,
    QuestionResult,
)

ALL = "all"
MAX_LINE_LENGTH, MAX_TEXT_LENGTH = 80, 200
EVALUATION: TypeAdapter[Evaluation] = TypeAdapter(Evaluation)
QUALITY = ("", "questions", "R@5", "R@10", "95 %", "R@30", "nDCG@10")


class QuestionLine(BaseModel):
    """One line of a file of questions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cue: str
    expected: str | list[str]
    category: str = ""
    now: AwareDatetime | None = None

    def to_value(self) -> EvaluationQuestion:
        """Return the question."""
        expected = [self.expected] if isinstance(self.expected, str) else self.expected
        return EvaluationQuestion(self.cue, tuple(expected), self.category, self.now)


def read_questions(path: Path) -> list[EvaluationQuestion]:
    """Read a file of questions; an error names the line."""
    found: list[EvaluationQuestion] = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        if line.strip():
            try:
                found.append(QuestionLine.model_validate_json(line).to_value())
            except ValidationError as problem:
                first = problem.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise InvalidInputError(f"{path.name}, line {number}: {where} {first['msg']}".strip()) from None
    if not found:
        raise InvalidInputError(f"{path.name} contains no questions")
    return found


def read_evaluation(path: Path) -> Evaluation:
    """Read what `to_json` wrote."""
    try:
        return EVALUATION.validate_json(path.read_bytes())
    except ValidationError:
        raise InvalidInputError(f"{path.name} is not a file written by --json") from None


def to_json(evaluation: Evaluation) -> bytes:
    """Write an evaluation with all its questions, to be read by programs and compared later."""
    return EVALUATION.dump_json(evaluation, indent=1) + b"\n"


def to_markdown(evaluation: Evaluation, difference: EvaluationDifference | None = None) -> str:
    """Write a report to be read: the means, then every question whose answers are not all among the first ten."""
    lines = ["# Evaluation of recall", "", *_write_table(QUALITY, list_qualities(evaluation)), ""]
    lines += ["The share of the expected memories that is among the first hits; drawing the questions again, 95 of 100"]
    lines += ["means of R@10 lie in the interval.", "", "## Within tokens", ""]
    lines += [f"The share that the first hits of so many tokens hold, counted by {evaluation.tokenizer}.", ""]
    lines += [*_write_table(*list_budgets(evaluation)), ""]
    if difference:
        lines += ["## Against the evaluation before", "", *(f"- {each}" for each in format_difference(difference)), ""]
    lines += ["## How the channels searched", "", *(f"- {each}" for each in format_methods(evaluation.methods)), ""]
    worst = list_worst(evaluation)
    lines += [f"## Not all found among ten: {len(worst)} questions, the worst first", ""]
    lines += [line for result in worst for line in _write_question(result)]
    return "\n".join(lines).rstrip() + "\n"


def list_means(evaluation: Evaluation) -> Iterator[tuple[str, QualityMean]]:
    """List the means, of all questions first."""
    yield ALL, evaluation.overall
    yield from evaluation.categories.items()


def list_qualities(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """List a row for all questions and each category, as QUALITY heads them."""
    return [
        (
            name,
            str(mean.questions),
            f"{mean.quality.recall_5:.3f}",
            f"{mean.quality.recall_10:.3f}",
            f"{mean.recall_10.low:.3f}-{mean.recall_10.high:.3f}",
            f"{mean.quality.recall_30:.3f}",
            f"{mean.quality.ndcg_10:.3f}",
        )
        for name, mean in list_means(evaluation)
    ]


def list_budgets(evaluation: Evaluation) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """List the budgets, and the recall within them for all questions and each category."""
    rows = [(name, *(f"{each.mean:.3f}" for each in mean.within.values())) for name, mean in list_means(evaluation)]
    overall = evaluation.overall.within.values()
    rows.insert(1, ("95 %", *(f"{each.low:.2f}-{each.high:.2f}" for each in overall)))
    return ("tokens", *(f"{budget:,}" for budget in evaluation.overall.within)), rows


def format_difference(difference: EvaluationDifference) -> list[str]:
    """Return the changes, one line each."""
    parts = {"R@10": difference.recall_10, "nDCG@10": difference.ndcg_10}
    parts |= {f"within {budget:,} tokens": each for budget, each in difference.within.items()}
    return [f"{name}: {write_change(each)}" for name, each in parts.items()]


def write_change(change: ConfidenceInterval) -> str:
    """Write a paired difference with its interval."""
    return f"{change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"


def format_methods(methods: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return how each channel searched, and how often."""
    return [
        f"{name}: " + "; ".join(f"{how} ({count})" for how, count in ways.items()) for name, ways in methods.items()
    ]


def list_worst(evaluation: Evaluation) -> list[QuestionResult]:
    """List the questions whose answers are not all among the first ten, the worst first."""
    return [result for result in evaluation.results if result.quality.recall_10 < 1]


def shorten(text: str, longest: int = MAX_LINE_LENGTH) -> str:
    """Bring a text onto one line of limited length."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def write_place(place: int | None) -> str:
    """Write the rank of an expected memory."""
    return "not among the hits" if place is None else f"place {place}"


def _write_question(result: QuestionResult) -> list[str]:
    category = f" ({result.question.category})" if result.question.category else ""
    lines = [f"### {_escape(shorten(result.question.cue, MAX_TEXT_LENGTH))}{category}", ""]
    for expected, place in result.places.items():
        where = "not in the scope: check the question" if expected in result.unknown else write_place(place)
        lines.append(f"- expected, {where}: {_escape(shorten(expected, MAX_TEXT_LENGTH))}")
    for above in result.above:
        relevance = "" if above.relevance is None else f", relevance {above.relevance:.3f}"
        lines.append(f"- above it{relevance}: {_escape(shorten(above.content, MAX_TEXT_LENGTH))} (`{above.id}`)")
    return [*lines, ""]


def _write_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    cells = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(map(_escape, row))} |" for row in cells]


def _escape(text: str) -> str:
    """Keep what a memory says from being read as Markdown or HTML."""
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, f"\\{sign}")
    return text
