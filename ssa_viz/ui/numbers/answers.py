"""What the two models answer, beside the truth."""

from __future__ import annotations

import numpy as np
import streamlit as st

from ssa_viz.errors import SSAVizError
from ssa_viz.figures import export, line_fit, predictions
from ssa_viz.tasks import TASKS
from ssa_viz.ui import cache
from ssa_viz.ui.charts import chart
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.numbers.views import Scene

GRID = tuple(float(x) for x in np.linspace(-3, 3, 61))


def answers(view: Scene) -> None:
    """Every prefix's answer: yes or no beside the truth, or the predicted line beside the true one."""
    if TASKS[view.problem.task].boolean:
        _yes_no(view)
    else:
        _line(view)


def _number_labels(view: Scene) -> list[str]:
    return [view.labels[token] for token in view.read[0][1].reads]


def _number_outlier(view: Scene) -> int | None:
    return None if view.problem.outlier is None else view.problem.outlier.position


def _yes_no(view: Scene) -> None:
    first = view.read[0][1]
    rows = [predictions.AnswerRow(side.label, reading.predictions, side.colour) for side, reading in view.read]
    figure = predictions.answers(
        rows,
        first.truth,
        _number_labels(view),
        palette=view.palette,
        title=TASKS[view.problem.task].question,
        outlier=_number_outlier(view),
    )
    chart(
        figure,
        "answers",
        alt="The answer of each model for each prefix, beside the truth",
        data=lambda: export.csv(
            {
                "position": np.arange(1, len(first.truth) + 1),
                "number": first.tokens[first.reads],
                "truth": first.truth,
                **{f"probability_of_true_{side.label}": reading.predictions for side, reading in view.read},
            }
        ),
    )
    st.caption("Exact zero counts as not positive.")


def _line(view: Scene) -> None:
    first = view.read[0][1]
    numbers = first.tokens[first.reads]
    a, b = view.problem.function
    grid = np.array(GRID, dtype=np.float32)
    lines = {}
    for side in view.sides:
        if side.checkpoint is None or side.reading is None:
            continue
        try:
            lines[side.label] = (cache.predicted_line(side.checkpoint, view.problem, GRID), side.colour)
        except SSAVizError as error:
            st.error(plain(f"{side.label}: {error}"), icon=":material/error:")
    left, right = st.columns(2)
    with left:
        chart(
            line_fit.line_fit(
                numbers,
                first.truth,
                grid=grid,
                true=a * grid + b,
                predicted=lines,
                palette=view.palette,
                title="Predicted line after the whole sequence",
                outlier=_number_outlier(view),
                xrange=(GRID[0], GRID[-1]),
            ),
            "line",
            alt="The true line, the points, and each model's predicted line",
            data=lambda: export.csv(
                {
                    "x": grid,
                    "true": a * grid + b,
                    **{f"predicted_{name}": y for name, (y, _) in lines.items()},
                }
            ),
        )
    errors = {side.label: (reading.error, side.colour) for side, reading in view.read}
    with right:
        chart(
            line_fit.squared_errors(errors, _number_labels(view), palette=view.palette, outlier=_number_outlier(view)),
            "errors",
            alt="Squared error at each position, one line a model",
            data=lambda: export.csv(
                {
                    "position": np.arange(1, len(numbers) + 1),
                    "x": numbers,
                    "true": first.truth,
                    **{f"predicted_{side.label}": reading.predictions for side, reading in view.read},
                    **{f"squared_error_{name}": values for name, (values, _) in errors.items()},
                }
            ),
        )
