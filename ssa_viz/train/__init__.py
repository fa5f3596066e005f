"""Training as a generator of events."""

from ssa_viz.train.config import TrainConfig
from ssa_viz.train.loop import Finished, Progress, train

__all__ = ["Finished", "Progress", "TrainConfig", "train"]
