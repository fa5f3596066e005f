"""Train the Train page's classroom preset with softmax and SSA, five seeds each, and print the README's table.

    python scripts/classroom.py [--task every] [--runs runs/classroom]

Goes on where it stopped. The numbers are those of each checkpoint's card: fresh prompts that nothing was chosen on.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ssa_viz import jobs  # noqa: E402
from ssa_viz.jobs import RunConfig  # noqa: E402
from ssa_viz.jobs.status import FINISHED, QUEUED  # noqa: E402
from ssa_viz.scoring import SCORING  # noqa: E402
from ssa_viz.train.presets import PRESETS, SCORED, SEEDS  # noqa: E402

ROWS = {
    "Wrong in distribution": ("in_distribution",),
    "Wrong from an injected 70 on": ("injected", "70", "from"),
    "Wrong after an injected 70": ("injected", "70", "after"),
    "Largest weight at an injected 70": ("injected", "70", "largest_weight"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="every", choices=("every", "some"))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "classroom")
    options = parser.parse_args()
    done = [each.run.train for each in finished(options.runs) if each.run is not None]
    wanted = [
        RunConfig(PRESETS["classroom"].recipe(options.task, scoring, seed), f"{scoring} {seed}", created=time.time())
        for seed in SEEDS
        for scoring in SCORED
    ]
    jobs.create(options.runs, [run for run in wanted if run.train not in done])
    while any(each.status.active or each.status.state == QUEUED for each in jobs.runs(options.runs)):
        time.sleep(1)
    cards = {}
    for each in finished(options.runs):
        if each.run is not None and each.run.train.task == options.task:
            train = each.run.train
            cards[train.model.scoring, train.seed] = json.loads((each.folder / "metrics.json").read_text())
    print("| | " + " | ".join(SCORING[name].label for name in SCORED) + f" | {SCORING[SCORED[1]].label} lower in |")
    print("|---|---|---|---|")
    for title, path in ROWS.items():
        values = {name: np.array([at(cards[name, seed], path) for seed in SEEDS]) for name in SCORED}
        cells = [f"{100 * v.mean():.2f} ± {100 * v.std(ddof=1):.2f}%" for v in values.values()]
        lower = values[SCORED[1]] < values[SCORED[0]]
        against = [str(seed) for seed, better in zip(SEEDS, lower, strict=True) if not better]
        but = f" (not in {', '.join(against)})" if against else ""
        print(f"| {title} | {' | '.join(cells)} | {int(lower.sum())} of {len(SEEDS)} seeds{but} |")
    seconds = [card["train_seconds"] for card in cards.values()]
    print(f"\n{np.mean(seconds):.0f} s a run, between {min(seconds):.0f} and {max(seconds):.0f}.")


def finished(root: Path) -> list[jobs.Listed]:
    return [each for each in jobs.runs(root) if each.status.state == FINISHED]


def at(card: object, path: tuple[str, ...]) -> float:
    value = card
    for name in path:
        value = value[name]  # type: ignore[index]
    return float(value)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
