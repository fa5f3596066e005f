"""The Models page's sections: all seeds in tables, every checkpoint on a card, the unusable ones with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import streamlit as st

from ssa_viz.checkpoints import Checkpoint, CheckpointConfig, Listing
from ssa_viz.errors import CheckpointError
from ssa_viz.evaluate.functions import comparable
from ssa_viz.evaluate.report import Evidence, amount, measures, number_at, spread
from ssa_viz.figures.palette import Palette
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.train.config import TrainConfig
from ssa_viz.train.presets import SCORED, SHIPPED, checkpoint_name, shipped
from ssa_viz.ui import cache
from ssa_viz.ui.command import training_command
from ssa_viz.ui.evidence import over_seeds, table
from ssa_viz.ui.numbers.inputs import VARIANT_LABELS

READOUTS = {"residual": "residual stream", "attention": "last attention layer"}

STYLE = """
<style>
.ssa-errors { width: 100%; border-collapse: collapse; margin-top: .5rem; font-size: .95rem; }
.ssa-errors td { padding: .22rem 0; vertical-align: baseline;
  border-top: 1px solid color-mix(in srgb, currentColor 12%, transparent); }
.ssa-errors td + td { text-align: right; white-space: nowrap; padding-left: .8rem; }
.ssa-errors small { display: block; font-weight: 600; }
.ssa-fault { overflow-wrap: anywhere; margin-bottom: .4rem; }
</style>
"""


@dataclass(frozen=True)
class Entry:
    """A folder of models/ or a checkpoint that should be there: `checkpoint`, or `error` that says why not."""

    name: str
    checkpoint: Checkpoint | None = None
    error: str | None = None


def entries() -> list[Entry]:
    """Every checkpoint, the broken ones and the shipped ones that are missing among them, in a fixed order."""
    listings = cache.catalogue(cache.MODELS)
    found = [_entry(listing) for listing in listings]
    present = {listing.name for listing in listings}
    for task, variant in SHIPPED:
        for scoring in SCORED:
            name = checkpoint_name(task, variant, scoring)
            if name not in present:
                folder = f"{cache.MODELS.name}/{name}"
                command = training_command(shipped(task, variant, scoring, 0))
                reason = f"{folder} is missing: copy it there, or train one with {command} --out {folder}"
                found.append(Entry(name, error=reason))
    return found


def own_entries() -> list[Entry]:
    """The checkpoints that the visitor trained, by name."""
    return [_entry(listing) for listing in cache.catalogue(cache.RUNS)]


def _entry(listing: Listing) -> Entry:
    """A listing looks at the config and the size of the weights only; a card needs the weights to be right."""
    try:
        loaded = cache.checkpoint(listing.folder) if listing.config is not None else None
    except CheckpointError as error:
        return Entry(listing.name, error=str(error))
    return Entry(listing.name, loaded, listing.error)


def all_seeds() -> None:
    """Where SSA is no better, in words, then every measure of every pair in a table."""
    found = {pair: over_seeds(*pair) for pair in SHIPPED}
    known = {pair: each for pair, each in found.items() if each is not None}
    if not known:
        st.info("The numbers over all seeds (models/seeds.json) are missing or cannot be read.", icon=":material/info:")
        return
    _no_better(known)
    for tab, evidence in zip(st.tabs([_title(*pair) for pair in found]), found.values(), strict=True):
        with tab:
            if evidence is None:
                st.caption("models/seeds.json has nothing usable on these models.")
            else:
                table(evidence)
    st.caption(
        "Mean ± standard deviation over seeds of weights and data, on test prompts that no model was trained or chosen "
        "on. “The answer already settled”: an earlier number had decided it. “From … on”: the injected number's own "
        "position and all later ones. The cards below are of the seed with the median error in distribution."
    )


def _no_better(known: Mapping[tuple[str, str], Evidence]) -> None:
    """Say in how many measures SSA's mean is lower, and name the others."""
    first, second = (SCORING[scoring].label for scoring in SCORED)
    rows = [(pair, row) for pair, evidence in known.items() for row in evidence.rows]
    failed = [(pair, row) for pair, row in rows if row.no_better]
    mixed = sum(bool(row.comparison.worse) and not row.no_better for _, row in rows)
    text = f"On average over the seeds, {second} is lower in **{len(rows) - len(failed)} of {len(rows)}** measures"
    text += f"; in {mixed} of these, not in every seed." if mixed else "."
    st.markdown(text)
    if failed:
        lines = [
            f"- {_title(*pair)}: {row.name[:1].lower()}{row.name[1:]}, "
            f"{spread(row.comparison.second.mean, row.comparison.second.std, row.share)} with {second}, "
            f"{spread(row.comparison.first.mean, row.comparison.first.std, row.share)} with {first}"
            for pair, row in failed
        ]
        st.warning("\n".join([f"**Where {second} is no better than {first}**", "", *lines]))


def faults(found: Sequence[Entry], palette: Palette) -> None:
    """Which checkpoints cannot be used, and why."""
    st.html(STYLE)
    unusable = [entry for entry in found if entry.error is not None]
    if not unusable:
        return
    lines = "".join(
        f'<div class="ssa-fault"><b>{escape(entry.name)}</b><br>{escape(entry.error or "")}</div>' for entry in unusable
    )
    st.html(
        f'<div class="ssa-card" style="--ssa-colour: {palette.wrong}; min-height: 0">'
        f'<div class="name">Cannot be used: {len(unusable)}. Everything else works.</div>{lines}</div>'
    )


def cards(found: Sequence[Entry], palette: Palette) -> None:
    """One card a checkpoint, those of one task and architecture side by side."""
    groups: dict[tuple[str, str], list[Checkpoint]] = {pair: [] for pair in SHIPPED}
    for entry in found:
        if entry.checkpoint is not None:
            run = entry.checkpoint.config.train
            groups.setdefault((run.task, run.model.variant), []).append(entry.checkpoint)
    for (task, variant), group in groups.items():
        if not group:
            continue
        st.subheader(_title(task, variant))
        st.caption(TASKS[task].question)
        known = over_seeds(task, variant)
        group.sort(key=lambda each: list(SCORING).index(each.config.train.model.scoring))
        first = next((each for each in group if each.config.train.model.scoring == SCORED[0]), None)
        for start in range(0, len(group), 2):
            for column, each in zip(st.columns(2, gap="large"), group[start : start + 2], strict=False):
                with column:
                    st.html(_card(each, None if each is first else first, known, palette))
                    st.code(training_command(each.config.train), language="bash", wrap_lines=True)


def _card(loaded: Checkpoint, rival: Checkpoint | None, known: Evidence | None, palette: Palette) -> str:
    """One checkpoint; where its numbers are not lower than the `rival`'s, it says so."""
    config = loaded.config
    run, model = config.train, config.train.model
    error = number_at(loaded.metrics, ("in_distribution",))
    boolean = TASKS[run.task].boolean
    measure = "wrong" if boolean else "squared error"
    # The seed alone would not do: a checkpoint trained in another way may have it too.
    median = known is not None and known.shipped.get(model.scoring) == run.seed and _is_recipe(run)
    lines = (
        f"{config.name} · seed {run.seed}{', the median one' if median else ''} · {run.steps:,} steps of {run.batch} "
        f"prompts · {config.weight_bytes / 1000:,.0f} kB on disk",
        f"{model.layers} layers × {model.heads} heads, width {model.width} · up to {model.context} tokens, "
        f"{run.prompt_format} prompts · positions {model.positions} · answer read from the {READOUTS[model.readout]}",
        _learned(config),
    )
    return (
        f'<div class="ssa-card" style="--ssa-colour: {palette.scoring(model.scoring)}">'
        f'<div class="name">{escape(SCORING[model.scoring].label)} · {measure} in distribution</div>'
        f'<div class="big">{"Not measured" if error is None else amount(error, boolean)}</div>'
        + "".join(f'<div class="line">{escape(line)}</div>' for line in lines)
        + f'<table class="ssa-errors">{_errors(loaded, rival)}</table></div>'
    )


def _is_recipe(run: TrainConfig) -> bool:
    """Whether a run follows the recipe of the shipped checkpoints."""
    pair = (run.task, run.model.variant)
    return pair in SHIPPED and run == shipped(*pair, run.model.scoring, run.seed)


def _learned(config: CheckpointConfig) -> str:
    """The range of each scoring parameter over heads and layers."""
    spans = []
    for name, layers in config.scoring.items():
        values = [value for layer in layers for value in layer]
        fixed = "" if config.train.model.learnable.get(name, True) else " (fixed)"
        least, most = f"{min(values):.3g}", f"{max(values):.3g}"
        spans.append(f"{name} {least if least == most else f'{least} to {most}'}{fixed}")
    return f"{', '.join(spans)} over heads and layers" if spans else "No parameters of its own"


def _errors(loaded: Checkpoint, rival: Checkpoint | None) -> str:
    """A table row for each measure that the checkpoint's metrics hold."""
    rows = []
    for name, path, share in measures(loaded.config.train.task):
        value = number_at(loaded.metrics, path)
        if value is None or not comparable(loaded.config.train.model.scoring, path):
            continue
        other = None if rival is None else number_at(rival.metrics, path)
        note = (
            "" if rival is None or other is None or value < other else f"<small>{_versus(value, other, rival)}</small>"
        )
        rows.append(f"<tr><td>{escape(name)}{note}</td><td>{amount(value, share)}</td></tr>")
    return "".join(rows)


def _versus(value: float, other: float, rival: Checkpoint) -> str:
    label = escape(SCORING[rival.config.train.model.scoring].label)
    return f"the same as {label}" if value == other else f"▲ worse than {label}"


def _title(task: str, variant: str) -> str:
    return f"{TASKS[task].label} · {VARIANT_LABELS[variant].lower()}"
