"""Measuring language models: how well they expect text, and which of two sentences they prefer."""

from ssa_viz.evaluate.language.card import language_card
from ssa_viz.evaluate.language.preference import Accuracy, accuracies, scores
from ssa_viz.evaluate.language.surprise import Surprise, surprise
from ssa_viz.evaluate.language.trigram import Trigram

__all__ = ["Accuracy", "Surprise", "Trigram", "accuracies", "language_card", "scores", "surprise"]
