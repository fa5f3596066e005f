"""The library's version, in a place that can be read without installing the library."""

__version__ = "0.1.0"
