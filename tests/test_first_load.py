"""The first checkpoint that a process loads must not wait for parts of PyTorch that it does not use."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

SCRIPT = """
import sys
from pathlib import Path
from ssa_viz import checkpoints
loaded = checkpoints.load(Path("models/every-attention_only-ssa"))
shapes = {name: tuple(t.shape) for name, t in loaded.model.state_dict().items()}
from ssa_viz.checkpoints.weights import expected_shapes
print("torch._dynamo" in sys.modules, shapes == expected_shapes(loaded.config.train.model))
"""


def test_loading_does_not_import_the_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.stdout.split() == ["False", "True"], done.stderr
