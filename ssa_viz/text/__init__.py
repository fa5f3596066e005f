"""Text: a byte-level tokenizer, corpora as documents, and the batches that language models learn from."""

from ssa_viz.text.corpus import Split, documents, split
from ssa_viz.text.tokenizer import MASK, PAD, START, Tokenizer, train_tokenizer

__all__ = ["MASK", "PAD", "START", "Split", "Tokenizer", "documents", "split", "train_tokenizer"]
