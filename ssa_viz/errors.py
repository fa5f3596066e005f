"""The one family of errors that this library raises for a caller's mistake.

Every message is a sentence that a person can act on: what was expected, what came, what to do.
"""


class SSAVizError(Exception):
    """Base of every error that this library raises on purpose."""


class UnknownNameError(SSAVizError):
    """A name is not in a registry; the message lists the names that are."""


class InvalidInputError(SSAVizError):
    """A value that a caller passed is outside what the function accepts."""


class NonFiniteError(SSAVizError):
    """NaN or infinity where only finite numbers make sense."""


class CheckpointError(SSAVizError):
    """A checkpoint is missing, damaged or not of the expected format."""


def as_sentence(text: str) -> str:
    """An error's words with a capital letter at their beginning; a file's name keeps its own."""
    return text if "/" in text.split(" ")[0] else text[:1].upper() + text[1:]
