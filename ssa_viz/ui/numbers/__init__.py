"""The Numbers page: its state, its inputs and its views."""
