"""The Guide page's sections."""

from __future__ import annotations

from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ssa_viz.figures import bars, export
from ssa_viz.figures.palette import Palette
from ssa_viz.inspect import lab, toy
from ssa_viz.metrics import COLLAPSE_KEYS, COLLAPSE_WEIGHT
from ssa_viz.scoring import SCORING
from ssa_viz.sequence import label
from ssa_viz.tasks import TASKS
from ssa_viz.train.presets import SCORED, SEEDS
from ssa_viz.ui.charts import chart
from ssa_viz.ui.state import State, whole

WIDTH = 860  # pixels: longer lines are hard to follow, also on a projector
MOST_T = 50
SLIDER_HELP = "A logit grows with the size of the number behind it: an injected 70 is this slider, far to the right."
SAMPLE = (0.7, 1.2, -0.4, 0.9)  # numbers of the example prompts
SAMPLE_LINE = (2.0, 1.0)  # a and b of the example prompt for `linear`

STYLE = """
<style>
.ssa-steps { display: flex; flex-wrap: wrap; align-items: stretch; gap: .5rem; margin: .2rem 0 .4rem; }
.ssa-steps div { flex: 1 1 12rem; padding: .55rem .8rem; border-radius: .375rem;
  border: 1px solid color-mix(in srgb, currentColor 18%, transparent); }
.ssa-steps b, .ssa-words dt { font-weight: 600; }
.ssa-steps span { display: block; opacity: .82; font-size: .95rem; }
.ssa-words { display: grid; grid-template-columns: max-content 1fr; gap: .45rem 1.4rem;
  margin: 0 !important; padding: 0 !important; }
.ssa-words dt, .ssa-words dd { margin: 0 !important; }
.ssa-prompt { font-variant-numeric: tabular-nums; white-space: nowrap; }
.ssa-prompt code { display: inline-block; width: 5.2rem; font-size: .9rem; opacity: .82; }
.ssa-prompt i { font-style: normal; font-weight: 650; border-bottom: 2px solid currentColor; }
@media (max-width: 640px) {
  .ssa-steps { flex-direction: column; }
  .ssa-steps div { flex: none; }
  .ssa-words { grid-template-columns: 1fr; gap: .1rem; }
  .ssa-words dd { margin-bottom: .6rem !important; }
}
</style>
"""

STEPS = (
    ("logit x", "how well a query and a key match: q·k/√D, any number"),
    ("score s(x)", "the logit made positive by the scoring function: never below 0"),
    ("weight w", "the score divided by the row's sum: a share from 0 to 1"),
)

WORDS = (
    ("logit", "The match of a query and a key, q·k/√D, before the scoring function."),
    ("score", "What the scoring function makes of a logit, before the row is divided by its sum."),
    ("weight", "The score's share of its row. The weights of a row add up to 1."),
    ("contextual mass", "1 minus the largest weight of a row: what is left for all other keys."),
    ("effective tokens", "How many equally weighted keys would be as spread out as this row: exp of its entropy."),
    (
        "collapse",
        f"A row whose largest weight is above {COLLAPSE_WEIGHT:g}, with {COLLAPSE_KEYS} or more visible keys.",
    ),
    ("in distribution", "Numbers as in training: normal with mean 0 and standard deviation σ = 1."),
    ("shifted", "Anything else: σ above 1, a longer sequence, or an injected number."),
    ("residual stream", "What each token carries from layer to layer; attention only adds to it."),
)


def guide_state() -> State:
    """The page's state."""
    return State("guide", [whole("t", 10, 0, MOST_T)])


def page() -> DeltaGenerator:
    """The column that holds the page, narrow enough to read."""
    st.html(STYLE)
    return st.container(width=WIDTH)


def attention() -> None:
    """Three sentences, and the way from a logit to a weight."""
    st.markdown(
        "A model reads numbers from left to right, and at each one it looks back at those so far. "
        "The number that looks is the **query**, each one looked at is a **key**, and every key gets a **weight** "
        "that says how much of it is mixed into what the query takes along. "
        "A **head** does this once, a **layer** has several heads, and L1 H3 is head 3 of layer 1, both counted "
        "from 0."
    )
    steps = "".join(f"<div><b>{escape(name)}</b><span>{escape(text)}</span></div>" for name, text in STEPS)
    st.html(f'<div class="ssa-steps">{steps}</div>')
    st.markdown(
        "In every picture **the query is the row**, top to bottom, and **the key is the column**. "
        "A query sees itself and what stands before it, never what comes after."
    )


def formulas(palette: Palette) -> None:
    """The compared functions as formulas."""
    for column, name in zip(st.columns(len(SCORED)), SCORED, strict=True):
        with column, st.container(border=True, height="stretch"):
            st.html(f'<b style="color: {palette.scoring(name)}">{escape(SCORING[name].label)}</b>')
            st.latex(SCORING[name].formula)
    st.markdown(
        "One row with five keys: the logit t of the first one grows, the others stay at "
        f"{', '.join(label(logit) for logit in toy.OTHERS)}. In softmax's score the logit is the exponent. In SSA's it "
        "is in the base, and the exponent has the fixed size n. Move t and watch what is left for the others."
    )


def growing_logit(t: float, palette: Palette) -> None:
    """Both functions on one row in which only the first logit grows."""
    logits = (float(t), *toy.OTHERS)
    rows = {name: lab.row(lab.Chosen(name), logits) for name in SCORED}
    for column, (name, row) in zip(st.columns(len(rows)), rows.items(), strict=True):
        collapsed = " · collapsed" if row.collapsed else ""
        column.html(
            f'<div class="ssa-card" style="--ssa-colour: {palette.scoring(name)}; min-height: 0">'
            f'<div class="name">{escape(SCORING[name].label)} · contextual mass</div>'
            f'<div class="big">{_mass(row.contextual_mass)}{collapsed}</div>'
            f'<div class="line">as spread out as {row.effective_tokens:.2f} of {len(logits)} keys'
            "</div></div>"
        )
    keys = [f"t = {label(t)}", *(label(logit) for logit in toy.OTHERS)]
    chart(
        bars.row_weights(
            {SCORING[name].label: (row.weights, palette.scoring(name)) for name, row in rows.items()},
            keys,
            palette=palette,
            title=f"Weights of one row, t = {label(t)}",
            growing=0,
        ),
        "growing",
        alt="The weight of each of five keys, a bar for softmax and a bar for SSA",
        data=lambda: export.csv({"logit": logits, **{f"weight_{name}": row.weights for name, row in rows.items()}}),
    )
    start = ", ".join(f"{p.name} = {p.default:g}" for p in SCORING["ssa"].parameters_spec)
    st.markdown(
        "Softmax's contextual mass falls as $e^{-t}$, SSA's as $(1 + bt)^{-n}$: far more slowly, but it falls too. "
        "Multiply all logits by one growing factor instead, with more than one of them positive, and SSA's stays "
        "above a limit, while softmax's goes to 0 unless the largest logits are equal."
    )
    st.caption(f"SSA is drawn with the values that training starts from, {start}; each head learns its own.")


def words() -> None:
    """One line for each word."""
    lines = "".join(f"<dt>{escape(word)}</dt><dd>{escape(line)}</dd>" for word, line in WORDS)
    st.html(f'<dl class="ssa-words">{lines}</dl>')


def tasks() -> None:
    """What the models were trained to answer, and what they read."""
    lines = []
    for name, task in TASKS.items():
        prompts = "".join(f'<div class="ssa-prompt">{_prompt(name, each)}</div>' for each in task.formats)
        lines.append(f"<dt>{escape(task.label)}</dt><dd>{escape(task.question)}{prompts}</dd>")
    st.html(f'<dl class="ssa-words">{"".join(lines)}</dl>')
    st.markdown(
        "An answer is read at each underlined number. Exact zero counts as not positive. "
        "A `labelled` prompt also holds the true answer after each number, 1 for yes and −1 for no. For a "
        "yes-or-no question that **gives the answer away**: once it is settled, the label before says it, and both "
        "functions stay right under an injected 70. So the models here read `numbers` for those two tasks. A line "
        "cannot be found without its y values, so `linear` is always labelled."
    )


def _prompt(task: str, prompt_format: str) -> str:
    """An example prompt with the tokens underlined at which an answer is read."""
    function = () if TASKS[task].boolean else SAMPLE_LINE
    prompt = toy.laid_out(task, prompt_format, SAMPLE, function)
    reads = set(prompt.reads.tolist())
    tokens = [label(float(token)) for token in prompt.tokens]
    shown = "&ensp;".join(f"<i>{each}</i>" if i in reads else each for i, each in enumerate(tokens))
    return f"<code>{escape(prompt_format)}</code>&ensp;{shown}"


def limits() -> None:
    """What attention weights do not say, and how the numbers on the other pages come about."""
    st.markdown(
        "- **A weight is not importance.** It says where a head looks, not what the answer depends on: a small "
        "weight on a large value can matter more than a large weight on a small one.\n"
        "- **SSA cannot mend the residual stream.** An injected number also travels past the attention, in the "
        "residual stream of its own position. What that does to the answer there, no scoring function changes.\n"
        "- **Two architectures.** `attention_only` has nothing but attention: its logits grow with the numbers, so an "
        "outlier collapses softmax. `transformer` normalises first and has an MLP, as GPT-2; its logits stay bounded, "
        "and an outlier moves the attention much less. Both read the answer from the residual stream.\n"
        f"- **Seeds differ.** {len(SEEDS)} seeds of each function are trained and all are reported. Shown is the one "
        "with the median error in distribution; none is picked by hand.\n"
        "- **Where SSA does not win, the Models page says so**, measure by measure and seed by seed."
    )


def source() -> None:
    """Where SSA comes from."""
    st.markdown(
        "Naim, Bhar, Bolte, Asher: *Scaled Signed Averaging…*, ACL 2026, "
        f"[arXiv 2508.14685]({SCORING['ssa'].source}). The models on these pages are much smaller than the paper's."
    )


def _mass(mass: float) -> str:
    """A contextual mass as per cent."""
    if mass < 0.0001:
        return "under 0.01%"
    return f"{mass:.1%}" if mass >= 0.01 else f"{100 * mass:.2g}%"
