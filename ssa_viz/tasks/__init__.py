"""Synthetic in-context-learning tasks. One file per task."""

from ssa_viz.registry import Registry
from ssa_viz.tasks.base import Outlier, Prompts, Shift, Task

TASKS: Registry[Task] = Registry("ssa_viz.tasks", Task, "task")  # type: ignore[type-abstract]

__all__ = ["TASKS", "Outlier", "Prompts", "Shift", "Task"]
