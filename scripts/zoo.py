"""Train every shipped recipe with every seed, ship the median seed of each, and write models/README.md.

    python scripts/zoo.py train  [--runs runs/zoo] [--only every-attention_only …] [--workers 2]
    python scripts/zoo.py ship   [--runs runs/zoo] [--models models]

`train` goes on where it stopped: a complete run is never repeated. Each run is one `python -m ssa_viz train`
process with one thread. `ship` copies the seed with the median in-distribution error, writes all seeds' numbers to
models/seeds.json, and their mean ± standard deviation to models/README.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ssa_viz.evaluate.seeds import median_seed  # noqa: E402
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


def train(runs: Path, only: list[str], workers: int) -> int:
    """Train what is missing; the number of runs that failed."""
    jobs = [
        (runs / f"{checkpoint_name(task, variant, scoring)}-{seed}", command(task, variant, scoring, seed))
        for task, variant in SHIPPED
        for seed in SEEDS
        for scoring in SCORED
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
    """Copy the median seeds and write seeds.json and README.md. Every seed must be there."""
    every: dict[str, Any] = {}
    for task, variant in SHIPPED:
        for scoring in SCORED:
            name = checkpoint_name(task, variant, scoring)
            cards = [json.loads((runs / f"{name}-{seed}" / "metrics.json").read_text()) for seed in SEEDS]
            chosen = median_seed([card["in_distribution"] for card in cards], SEEDS)
            shutil.rmtree(models / name, ignore_errors=True)
            shutil.copytree(runs / f"{name}-{chosen}", models / name)
            config = models / name / "config.json"
            document = json.loads(config.read_text())
            config.write_text(json.dumps({**document, "name": name}, indent=2, sort_keys=True) + "\n")
            entry = every.setdefault(f"{task}-{variant}", {"seeds": list(SEEDS), "shipped": {}, "cards": {}})
            entry["shipped"][scoring] = chosen
            entry["cards"][scoring] = cards
    (models / "seeds.json").write_text(json.dumps(every, indent=1, sort_keys=True) + "\n")
    (models / "README.md").write_text(readme(every))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("train", "ship"))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "zoo")
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.action == "train":
        sys.exit(1 if train(options.runs, options.only, options.workers) else 0)
    ship(options.runs, options.models)
