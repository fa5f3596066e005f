"""Measuring a trained model on prompts drawn from a seed, in distribution and shifted."""

from ssa_viz.evaluate.card import CARD_SEED, card
from ssa_viz.evaluate.measure import Measures, measure

__all__ = ["CARD_SEED", "Measures", "card", "measure"]
