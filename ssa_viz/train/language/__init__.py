"""Training of language models: one run decides its weights by its config and its text alone, and goes on exactly."""
