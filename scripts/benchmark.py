"""Measure the app and the model on this machine, one line each, with what we aim at beside it.

    python scripts/benchmark.py [--quick] [--markdown] [--only server browser forward scoring train maps] [--threads 1]

docs/benchmarks.md says what each line means. The exit status does not depend on the numbers: only a measurement
that could not be made is a failure.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from benchmark_line import Line, markdown

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

PARTS = ("server", "browser", "forward", "scoring", "train", "maps")
EDITS, QUICK_EDITS = 30, 5
VERSIONS = ("torch", "streamlit", "plotly", "numpy", "transformers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few repeats, to see that it works")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/benchmarks.md")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="leave out the other parts")
    parser.add_argument("--threads", type=int, default=1, help="that torch computes with")
    options = parser.parse_args()
    # Before torch is imported: it reads these once.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(options.threads))
    spoken = sys.stderr if options.markdown else sys.stdout
    preface = machine(options.threads)
    print(preface, file=spoken, flush=True)
    lines = []
    for line in measure(options.only, options.threads, quick=options.quick):
        print(line.sentence(), file=spoken, flush=True)
        lines.append(line)
    if options.markdown:
        print(f"{preface}\n\n{markdown(lines)}")


def measure(parts: list[str], threads: int, *, quick: bool) -> Iterator[Line]:
    """Every line of the parts, as soon as it is measured."""
    import benchmark_forward
    import benchmark_maps
    import benchmark_page
    import benchmark_scoring
    import benchmark_train

    edits = QUICK_EDITS if quick else EDITS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "server" in parts or "browser" in parts:
            benchmark_page.write_models(folder / "models")
        with benchmark_page.showing(folder / "models"):
            if "server" in parts:
                yield from benchmark_page.on_the_server(edits)
            if "browser" in parts:
                yield from benchmark_page.in_the_browser(edits, folder / "app.log")
    if "forward" in parts:
        yield from benchmark_forward.forward(quick=quick)
    if "scoring" in parts:
        yield from benchmark_scoring.scoring(quick=quick)
    if "train" in parts:
        yield from benchmark_train.train(quick=quick)
    if "maps" in parts:
        yield from benchmark_maps.maps(threads, quick=quick)


def machine(threads: int) -> str:
    """The kind of machine and the versions, in words. A load near 0 means that nothing else was running."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    versions = ", ".join(f"{package} {version(package)}" for package in VERSIONS)
    return (
        f"{cores} cores ({_processor()}, {platform.system()}){load}; {threads} thread{'s' * (threads != 1)} "
        f"for torch; Python {platform.python_version()}, {versions}."
    )


def _processor() -> str:
    """The processor's name where Linux tells it, else its architecture."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in told if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
