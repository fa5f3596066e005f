"""Error maps: fresh prompts, honest rivals, counts that a loop confirms, and a store that holds whole maps or none."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from ssa_viz import checkpoints, cli
from ssa_viz.errors import CheckpointError, InvalidInputError, NonFiniteError
from ssa_viz.evaluate import grids as g
from ssa_viz.evaluate.grids import store as store_module
from ssa_viz.evaluate.grids.cell import measure_cell
from ssa_viz.evaluate.grids.grid import GRID_SEED
from ssa_viz.evaluate.grids.measured import from_document, to_document
from ssa_viz.evaluate.grids.rivals import least_squares, mean, nearest_neighbours
from ssa_viz.jobs.measuring import CANCELLED, DONE, FAILED, Desk
from ssa_viz.model import ModelConfig, build, lengthened
from ssa_viz.tasks import TASKS
from ssa_viz.train import TrainConfig

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "models"
TINY = ModelConfig(layers=1, heads=2, width=8, context=9, scoring="ssa", init="torch")
RUN = TrainConfig(model=TINY, length=7, steps=1, batch=1, warmup=0)
LINE = TrainConfig(
    model=dataclasses.replace(TINY, context=15), task="linear", prompt_format="labelled", length=7, steps=1, warmup=0
)


def small(run: TrainConfig = RUN, kind: int = 0, sequences: int = 6) -> g.Grid:
    """A grid of the right kind with few cells."""
    grid = list(g.grids(run, sequences=sequences).values())[kind]
    rows = dataclasses.replace(grid.rows, values=grid.rows.values[:2] if grid.rows.what != "value" else (-70.0, 70.0))
    return dataclasses.replace(
        grid, rows=rows, columns=dataclasses.replace(grid.columns, values=grid.columns.values[:3])
    )


def measured(run: TrainConfig, grid: g.Grid, threads: int = 1) -> g.Measured:
    model = build(run.model, 3).eval()
    count = grid.shape[0] * grid.shape[1]
    return g.assembled(run, grid, dict(g.cells(model, run, grid, range(count), threads=threads)))


@pytest.fixture
def saved(tmp_path: Path) -> checkpoints.Checkpoint:
    checkpoints.save(tmp_path / "tiny", build(TINY, 3), RUN, {})
    return checkpoints.load(tmp_path / "tiny")


@pytest.mark.parametrize("task", ["every", "some"])
def test_a_constant_answer_looks_bad_in_every_cell_however_it_is_counted(task: str) -> None:
    """The published evaluation made `always no` right from the fourth number on, at every σ and length."""
    run = dataclasses.replace(RUN, task=task)
    grid = g.grids(run, sequences=400)["width_length"]
    model = lengthened(build(TINY, 0), 200)
    for row in (0, 3, 8):
        for column in (0, 5, 9):
            cell = measure_cell(model, run, dataclasses.replace(grid, sequences=60 if row == 8 else 400), row, column)
            for who in ("always yes", "always no"):
                assert 0.3 < cell[who]["answers"] < 0.7, (who, row, column)  # type: ignore[operator]
                assert cell[who]["sequences"] > 0.5, (who, row, column)  # type: ignore[operator]


def test_no_two_cells_share_their_prompts() -> None:
    grid = g.grids(RUN)["width_length"]
    seeds = [grid.at(row, column)[2] for row in range(grid.shape[0]) for column in range(grid.shape[1])]
    assert len(set(seeds)) == len(seeds)
    assert min(seeds) == GRID_SEED
    signs = []
    for column in (0, 5):
        shift, length, seed = grid.at(0, column)
        generator = torch.Generator().manual_seed(seed)
        prompts = TASKS["every"]().sample(200, length, generator, prompt_format="numbers", shift=shift)
        signs.append(prompts.numbers > 0)
    assert 0.1 < (signs[0] != signs[1]).double().mean() < 0.9


def test_counts_are_those_of_a_plain_loop() -> None:
    grid = small(sequences=9)
    shift, length, seed = grid.at(1, 2)
    long = lengthened(build(TINY, 3), 20)
    cell = measure_cell(long, RUN, grid, 1, 2)
    generator = torch.Generator().manual_seed(seed)
    prompts = TASKS["every"]().sample(9, length, generator, prompt_format="numbers", shift=shift)
    said = long(prompts.tokens).predictions.detach()
    wrong, spoilt = 0, 0
    for i in range(9):
        late = False
        for j in range(length):
            truth = all(float(x) > 0 for x in prompts.numbers[i, : j + 1])
            mistake = (float(said[i, j]) > 0) != truth
            wrong += mistake
            late = late or (mistake and j >= 3)
        spoilt += late
    assert cell["model"] == {"answers": pytest.approx(wrong / (9 * length)), "sequences": pytest.approx(spoilt / 9)}


def test_injected_values_are_counted_at_from_and_after() -> None:
    run, model = LINE, build(LINE.model, 3)
    grid = small(run, 1, sequences=5)
    cell = measure_cell(model, run, grid, 1, 2)
    shift, length, seed = grid.at(1, 2)
    assert shift.outlier is not None
    at = shift.outlier.position
    prompts = TASKS["linear"]().sample(
        5, length, torch.Generator().manual_seed(seed), prompt_format="labelled", shift=shift
    )
    assert (prompts.numbers[:, at] == 70).all()
    error = (model(prompts.tokens).predictions[:, prompts.reads] - prompts.answers).square().detach()
    assert cell["model"]["at"] == pytest.approx(float(error[:, at].mean()), rel=1e-5)
    assert cell["model"]["from"] == pytest.approx(float(error[:, at:].mean()), rel=1e-5)
    assert cell["model"]["after"] == pytest.approx(float(error[:, at + 1 :].mean()), rel=1e-5)
    trace = model(prompts.tokens, trace=True).trace
    assert trace is not None
    largest = trace.weights()[..., 2 * at, :].amax(-1).mean().detach()
    assert cell["model"]["largest_weight"] == pytest.approx(float(largest), rel=1e-5)
    last = dataclasses.replace(grid, columns=dataclasses.replace(grid.columns, values=(6.0,)))
    assert measure_cell(model, run, last, 0, 0)["model"]["after"] is None


def test_the_lines_rivals_agree_with_numpy() -> None:
    rng = np.random.default_rng(0)
    x, f = rng.normal(size=(20, 9)), rng.normal(size=(20, 9))  # not on a line, so that least squares has to choose
    given = torch.from_numpy(x), torch.from_numpy(f)
    found = {
        name: rival(*given).numpy() for name, rival in (("ls", least_squares), ("nn", nearest_neighbours), ("m", mean))
    }
    for i in range(20):
        assert [float(each[i, 0]) for each in found.values()] == [0, 0, 0]
        for j in range(1, 9):
            line = np.linalg.lstsq(np.stack([x[i, :j], np.ones(j)], axis=1), f[i, :j], rcond=None)[0]
            assert found["ls"][i, j] == pytest.approx(line @ (x[i, j], 1), rel=1e-7)
            near = np.argsort(np.abs(x[i, :j] - x[i, j]))[:3]
            assert found["nn"][i, j] == pytest.approx(f[i, near].mean())
            assert found["m"][i, j] == pytest.approx(f[i, :j].mean())
    same = least_squares(torch.ones(1, 4), torch.tensor([[2.0, 4.0, 3.0, 0.0]]))
    assert same[0].tolist() == pytest.approx([0, 2, 3, 3])


def test_least_squares_knows_the_line_and_the_variance_is_that_of_the_targets() -> None:
    grid = small(LINE, sequences=200)
    cell = measure_cell(build(LINE.model, 3), LINE, grid, 1, 2)
    assert cell["least squares"]["known"] < 1e-3 < cell["least squares"]["points"]  # type: ignore[operator]
    assert cell["target"]["variance"] == pytest.approx(2**2 * (3**2 + 1), rel=0.25)


def test_a_longer_context_leaves_the_own_one_as_it_is() -> None:
    model = build(TINY, 3).eval().requires_grad_(False)
    longer = lengthened(model, 40)
    x = torch.randn(4, 9, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(longer(x).predictions, model(x).predictions, rtol=0, atol=0)
    assert longer(torch.randn(2, 40)).predictions.isfinite().all()
    assert lengthened(model, 9) is model
    assert not any(parameter.requires_grad for parameter in longer.parameters())
    assert longer.position is not None
    table = longer.position.weight
    torch.testing.assert_close(table[:9], model.position.weight)  # type: ignore[union-attr]
    assert (table[9:].std(dim=1) > 0).all()
    with pytest.raises(InvalidInputError):
        lengthened(model, 10**6)


def test_threads_change_nothing_and_a_missing_cell_is_refused() -> None:
    grid = small()
    one, two = measured(RUN, grid), measured(RUN, grid, threads=2)
    for who, kinds in one.found.items():
        for kind, values in kinds.items():
            np.testing.assert_array_equal(values, two.found[who][kind])
    with pytest.raises(InvalidInputError, match="1 of 6 cells are missing"):
        g.assembled(RUN, grid, dict(g.cells(build(TINY, 3), RUN, grid, range(5))))
    with pytest.raises(InvalidInputError):
        g.grids(RUN, sequences=0)


def test_numbers_that_are_not_finite_are_refused() -> None:
    model = build(LINE.model, 3)
    with torch.no_grad():
        model.read_out.weight.fill_(float("inf"))
    with pytest.raises(NonFiniteError, match="σ of the lines' a and b = 1, σ of the x = 2"):
        measure_cell(model, LINE, small(LINE), 0, 1)


def test_a_map_comes_back_from_its_file_and_belongs_to_its_weights_and_grid(
    saved: checkpoints.Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = small()
    store = g.Store(tmp_path / "shipped", tmp_path / "own")
    assert store.find(saved.config, grid) is None
    path = store.keep(saved.config, measured(RUN, grid))
    again = store.find(saved.config, grid)
    assert again is not None
    np.testing.assert_array_equal(again.found["model"]["answers"], measured(RUN, grid).found["model"]["answers"])
    assert store.find(saved.config, dataclasses.replace(grid, sequences=7)) is None
    assert store.find(dataclasses.replace(saved.config, sha256="0" * 64), grid) is None
    monkeypatch.setattr("ssa_viz.evaluate.grids.measured.MEASURED_BY", 99)
    assert store.find(saved.config, grid) is None
    monkeypatch.undo()
    for damage in (b"{", b"[]", b'{"format": "ssa-viz-error-map"}', path.read_bytes().replace(b"always no", b"nobody")):
        path.write_bytes(damage)
        assert store.find(saved.config, grid) is None
    document = to_document(saved.config, measured(RUN, grid))
    document["found"]["model"]["answers"] = [[0.5]]
    with pytest.raises(InvalidInputError, match="was expected"):
        from_document(document, saved.config, grid)


def test_the_store_is_bounded_and_says_when_it_cannot_write(
    saved: checkpoints.Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MOST_FILES", 3)
    store = g.Store(tmp_path / "shipped", tmp_path / "own")
    paths = []
    for sequences in range(1, 6):
        grid = small(sequences=sequences)
        paths.append(store.keep(saved.config, measured(RUN, grid)))
        os.utime(paths[-1], (sequences, sequences))
    assert sorted(path.name for path in store.own.iterdir()) == sorted(path.name for path in paths[2:])
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        g.Store(tmp_path, tmp_path / "file" / "own").keep(saved.config, measured(RUN, small()))


@pytest.mark.parametrize("folder", sorted(path.name for path in MODELS.iterdir() if (path / "config.json").exists()))
def test_every_shipped_model_has_its_maps(folder: str) -> None:
    config = checkpoints.read_config(MODELS / folder)
    store = g.usual(MODELS, Path("/nowhere"))
    for grid in g.grids(config.train).values():
        assert store.find(config, grid) is not None, (
            f"{grid.name}: python -m ssa_viz maps models/{folder} --to models/maps"
        )


@pytest.mark.parametrize("folder", ["every-attention_only-ssa", "some-transformer-softmax", "linear-transformer-ssa"])
def test_cells_of_the_shipped_maps_are_measured_again(folder: str) -> None:
    """If this fails after a change that may change numbers, raise MEASURED_BY and measure the maps again."""
    loaded = checkpoints.load(MODELS / folder)
    run = loaded.config.train
    for grid in g.grids(run).values():
        kept = g.usual(MODELS, Path("/nowhere")).find(loaded.config, grid)
        assert kept is not None
        place = grid.shape[1] - 1  # of the first row
        [(_, cell)] = g.cells(loaded.model, run, grid, [place])
        for who, kinds in kept.found.items():
            for kind, values in kinds.items():
                expected = cell[who][kind]
                # A prediction so near to 0 that another processor rounds it to the other side changes one answer.
                tolerance = 2 / grid.sequences if TASKS[run.task].boolean and kind != "largest_weight" else 0
                if expected is not None:
                    assert values.flat[place] == pytest.approx(expected, rel=1e-4, abs=tolerance), (
                        grid.name,
                        who,
                        kind,
                    )


def test_two_processes_measure_what_one_does(saved: checkpoints.Checkpoint, tmp_path: Path) -> None:
    options = ["maps", str(saved.config.folder), "--kind", "value_position", "--sequences", "4"]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launch, "-m", "ssa_viz", *options, "--to", str(tmp_path / "two")],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert cli.main([*options, "--to", str(tmp_path / "one")]) == 0
    [one], [two] = ([*(tmp_path / name).iterdir()] for name in ("one", "two"))
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()


def test_the_command_line_prints_checks_and_refuses(
    saved: checkpoints.Checkpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["maps", str(saved.config.folder), "--kind", "value_position", "--sequences", "3"]
    assert cli.main([*options, "--progress"]) == 0
    said = capsys.readouterr().out
    count = len(g.grids(RUN)["value_position"].rows.values) * len(g.grids(RUN)["value_position"].columns.values)
    assert f"cells {count} {count}" in said
    assert "always no: from the injected value on" in said
    assert cli.main([*options, "--check", str(tmp_path / "kept")]) == 1
    assert cli.main([*options, "--to", str(tmp_path / "kept")]) == 0
    assert cli.main([*options, "--check", str(tmp_path / "kept")]) == 0
    [path] = (tmp_path / "kept").iterdir()
    document = json.loads(path.read_text())
    document["found"]["model"]["at"][0][0] = 0.123
    path.write_text(json.dumps(document))
    assert cli.main([*options, "--check", str(tmp_path / "kept")]) == 1
    assert "DIFFERS: map.found.model.at[0][0]" in capsys.readouterr().out
    assert cli.main(["maps", str(saved.config.folder), "--kind", "functions_inputs"]) == 1
    assert "it has: width_length, value_position" in capsys.readouterr().err


def until_over(one: object, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while one.active:  # type: ignore[attr-defined]
        assert time.monotonic() < end
        time.sleep(0.05)


def test_measuring_in_the_background_is_shared_cancelled_and_leaves_no_half_map(
    saved: checkpoints.Checkpoint, tmp_path: Path
) -> None:
    desk, into = Desk(), tmp_path / "own"
    grid = g.grids(RUN, sequences=50_000)["width_length"]
    first = desk.start("a", saved.config.folder, grid.name, grid.sequences, into)
    assert desk.start("a", saved.config.folder, grid.name, grid.sequences, into) is first
    waits = desk.start("b", saved.config.folder, grid.name, grid.sequences, into)
    end = time.monotonic() + 120
    while first.done == 0:
        assert first.active, first.error
        assert time.monotonic() < end
        time.sleep(0.05)
    assert first.count == grid.shape[0] * grid.shape[1]
    assert waits.state == "waiting"
    waits.cancel()
    first.cancel()
    first.cancel()
    assert first.future is not None
    assert waits.future is not None
    first.future.result(60)
    waits.future.result(60)
    assert (first.state, waits.state) == (CANCELLED, CANCELLED)
    assert not into.exists() or not [*into.iterdir()]

    last = desk.start("a", saved.config.folder, "value_position", 2, into)
    until_over(last)
    assert (last.state, last.done, last.error) == (DONE, last.count, None)
    small_grid = g.grids(RUN, sequences=2)["value_position"]
    assert g.Store(tmp_path, into).find(saved.config, small_grid) is not None
    broken = desk.start("c", tmp_path / "nothing", "value_position", 2, into)
    until_over(broken)
    assert broken.state == FAILED
    assert broken.error is not None
    assert "is missing" in broken.error
