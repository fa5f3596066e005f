"""The Scoring lab page: scoring functions side by side on one row of logits."""
