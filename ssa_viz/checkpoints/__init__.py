"""Trained models on disk: safetensors and JSON in one folder, checked before anything is built."""

from ssa_viz.checkpoints.discover import discover
from ssa_viz.checkpoints.format import Checkpoint, CheckpointConfig, Listing
from ssa_viz.checkpoints.load import load, read_config
from ssa_viz.checkpoints.save import check_room, save

__all__ = ["Checkpoint", "CheckpointConfig", "Listing", "check_room", "discover", "load", "read_config", "save"]
