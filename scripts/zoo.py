"""Train every shipped recipe with every seed, ship the median seed of each, and write models/README.md.

    python scripts/zoo.py train  [--runs runs/zoo] [--only every-attention_only …] [--scoring ssa …] [--workers 2]
    python scripts/zoo.py ship   [--runs runs/zoo] [--models models]
    python scripts/zoo.py maps   [--models models] [--workers 2]

`train` goes on where it stopped: a complete run is never repeated. Each run is one `python -m ssa_viz train`
process with one thread. `ship` takes softmax and SSA, which must be complete, and every other function that has all
seeds; it copies the seed with the median in-distribution error, writes all seeds' numbers to
models/seeds.json, and their mean ± standard deviation to models/README.md. `maps` measures the error maps that the
Robustness page shows, those that are missing, and removes those that belong to no shipped checkpoint any more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ssa_viz import checkpoints  # noqa: E402
from ssa_viz.evaluate.functions import all_functions  # noqa: E402
from ssa_viz.evaluate.grids import Store, assembled, cells, grids, key  # noqa: E402
from ssa_viz.evaluate.report import agreement, over_seeds, spread  # noqa: E402
from ssa_viz.evaluate.seeds import median_seed  # noqa: E402
from ssa_viz.scoring import SCORING  # noqa: E402
from ssa_viz.tasks import TASKS  # noqa: E402
from ssa_viz.train.presets import SCORED, SEEDS, SHIPPED, checkpoint_name  # noqa: E402


def command(task: str, variant: str, scoring: str, seed: int) -> list[str]:
    """The arguments that train one seed of one recipe."""
    return [
        "train",
        "--shipped",
        "--task",
        task,
        "--variant",
        variant,
        "--scoring",
        scoring,
        "--seed",
        str(seed),
    ]


def train(runs: Path, only: list[str], scored: list[str], workers: int) -> int:
    """Train what is missing; the number of runs that failed."""
    jobs = [
        (runs / f"{checkpoint_name(task, variant, scoring)}-{seed}", command(task, variant, scoring, seed))
        for task, variant in SHIPPED
        for seed in SEEDS
        for scoring in scored
        if not only or f"{task}-{variant}" in only
    ]

    def run(job: tuple[Path, list[str]]) -> bool:
        folder, arguments = job
        if (folder / "config.json").exists():
            return True
        done = subprocess.run(
            [sys.executable, "-m", "ssa_viz", *arguments, "--out", str(folder)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"{'done' if done.returncode == 0 else 'FAILED'} {folder.name}", flush=True)
        if done.returncode:
            print(done.stderr, file=sys.stderr, flush=True)
        return done.returncode == 0

    with ThreadPoolExecutor(workers) as pool:
        return sum(not ok for ok in pool.map(run, jobs))


def ship(runs: Path, models: Path) -> None:
    """Copy the median seeds and write seeds.json and README.md."""
    every: dict[str, Any] = {}
    for task, variant in SHIPPED:
        for scoring in SCORING:
            name = checkpoint_name(task, variant, scoring)
            if scoring not in SCORED and not all((runs / f"{name}-{seed}" / "config.json").exists() for seed in SEEDS):
                continue
            cards = [json.loads((runs / f"{name}-{seed}" / "metrics.json").read_text()) for seed in SEEDS]
            chosen = median_seed([card["in_distribution"] for card in cards], SEEDS)
            best = checkpoints.load(runs / f"{name}-{chosen}")
            checkpoints.save(models / name, best.model, best.config.train, best.metrics)
            entry = every.setdefault(f"{task}-{variant}", {"seeds": list(SEEDS), "shipped": {}, "cards": {}})
            entry["shipped"][scoring] = chosen
            entry["cards"][scoring] = cards
    (models / "seeds.json").write_text(json.dumps(every, indent=1, sort_keys=True) + "\n")
    (models / "README.md").write_text(readme(every))


def maps(models: Path, workers: int) -> None:
    """Bring models/maps to what the checkpoints need."""
    torch.set_num_threads(1)  # the cells are shared among threads, each of which computes alone
    store = Store(models / "maps", models / "maps")
    wanted = set()
    for listing in checkpoints.discover(models):
        if listing.config is None:
            raise SystemExit(f"{listing.name}: {listing.error}")
        run = listing.config.train
        for grid in grids(run).values():
            wanted.add(f"{key(listing.config, grid)}.json")
            if store.find(listing.config, grid) is None:
                model = checkpoints.load(listing.folder).model
                found = cells(model, run, grid, range(grid.shape[0] * grid.shape[1]), threads=workers)
                store.keep(listing.config, assembled(run, grid, dict(found)))
                print(f"done {listing.name} {grid.name}", flush=True)
    for path in (models / "maps").glob("*.json"):
        if path.name not in wanted:
            path.unlink()


README = """# The shipped checkpoints

One folder a model: `model.safetensors`, `config.json` (written last: its presence means complete) and `metrics.json`
(its card). Every recipe was trained with seeds {seeds}, for every scoring function alike: the same starting weights,
the same prompts in the same order. The seed with the median error in distribution is shipped. No seed is left out, and
none is picked by hand. All seeds' cards are in `seeds.json`; the tables below are made from it.

Train everything again, ship it, and check a card:

```
python scripts/zoo.py train
{more}python scripts/zoo.py ship
python scripts/zoo.py maps
python -m ssa_viz evaluate --check models/*/
python -m ssa_viz maps --check models/maps models/*/
python -m ssa_viz table --measure
```

Bit for bit the same weights come out on the same kind of processor with the same torch and `SSA_VIZ_KERNELS=0`: softmax
and SSA were trained before they had compiled loops, which round the last bits differently. With the loops training is
faster, and a run goes another way in its last bits, as on another processor. The other functions have no such loops.
Trained on {machine}, one thread a run.

Test prompts: {sequences} sequences, drawn from seed {seed}, which no model was trained or chosen on. An injected value
replaces the number at a quarter, half and three quarters of the sequence, and the three are averaged. Yes-or-no tasks
count wrong answers; `linear` has squared errors. Mean ± standard deviation over seeds; lower is better.
"""


def readme(every: dict[str, Any]) -> str:
    """The text of models/README.md."""
    card = next(iter(every.values()))["cards"][SCORED[0]][0]
    parts = [
        README.format(
            seeds=", ".join(map(str, SEEDS)),
            machine=f"{os.cpu_count()} cores of an {platform.machine()} machine without a GPU",
            more="".join(
                f"python scripts/zoo.py train --only {pair} --scoring {' '.join(names)}\n"
                for pair, entry in every.items()
                if (names := [name for name in SCORING if name in entry["shipped"] and name not in SCORED])
            ),
            sequences=card["sequences"],
            seed=card["seed"],
        )
    ]
    first, second = (SCORING[scoring].label for scoring in SCORED)
    for task, variant in SHIPPED:
        entry = every[f"{task}-{variant}"]
        found = over_seeds(task, entry)
        seconds = {name: sum(c["train_seconds"] for c in cards) / len(cards) for name, cards in entry["cards"].items()}
        parts.append(f"\n## `{task}`, {variant}: {TASKS[task].question}\n")
        parts.append(f"| | {first} | {second} | {second} lower in |\n|---|---|---|---|")
        for row in found.rows:
            one, two = row.comparison.first, row.comparison.second
            cells = (spread(one.mean, one.std, row.share), spread(two.mean, two.std, row.share))
            parts.append(f"| {row.name} | {cells[0]} | {cells[1]} | {agreement(row, len(found.seeds))} |")
        parts.append("")
        parts += others(task, entry)
        for scoring in (name for name in SCORING if name in entry["shipped"]):
            line = " ".join(command(task, variant, scoring, entry["shipped"][scoring]))
            parts.append(
                f"- {SCORING[scoring].label}: seed {entry['shipped'][scoring]} is shipped; "
                f"{seconds[scoring]:.0f} s a run with its card, other work beside it; `python -m ssa_viz {line}`"
            )
    return "\n".join(parts) + "\n"


def others(task: str, entry: dict[str, Any]) -> list[str]:
    """A table of all functions, if there are more than the two; the best one is bold where it is clear."""
    found = all_functions(task, entry)
    if len(found.names) <= len(SCORED):
        return []
    lines = [
        "All functions; bold where the lowest mean is further from the next than either's spread:",
        "",
        f"| | {' | '.join(measure.name for measure in found.measures)} |",
        "|---" * (len(found.measures) + 1) + "|",
    ]
    for name in found.names:
        cells = []
        for measure in found.measures:
            one = measure.found[name]
            cell = "–" if one is None else spread(one.mean, one.std, measure.share)
            cells.append(f"**{cell}**" if measure.best == name else cell)
        lines.append(f"| {SCORING[name].label} | {' | '.join(cells)} |")
    return [*lines, ""]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("train", "ship", "maps"))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "zoo")
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--scoring", nargs="*", default=list(SCORED), choices=list(SCORING))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.action == "train":
        sys.exit(1 if train(options.runs, options.only, options.scoring, options.workers) else 0)
    if options.action == "ship":
        ship(options.runs, options.models)
    else:
        maps(options.models, options.workers)
