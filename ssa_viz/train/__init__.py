"""Training of small in-context learners, as a generator of events.

from ssa_viz.train import Finished, TrainConfig, train

for event in train(TrainConfig(task="every", steps=500)):
    print(event.model if isinstance(event, Finished) else event)
"""

from ssa_viz.train.config import TrainConfig
from ssa_viz.train.loop import Finished, train
from ssa_viz.train.probe import Probe, Probed
from ssa_viz.train.state import TrainingState
from ssa_viz.train.training import Progress, Training

__all__ = ["Finished", "Probe", "Probed", "Progress", "TrainConfig", "Training", "TrainingState", "train"]
