"""The Robustness page: every function over its seeds, and error maps of single models."""
