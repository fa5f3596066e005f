"""See attention collapse: scoring functions, small in-context learners and their traces."""
