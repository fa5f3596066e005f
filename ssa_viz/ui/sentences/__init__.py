"""The Sentences page's pieces."""
