"""Hourbell: a multi-tenant distributed job scheduler on AWS."""

__version__ = "0.1.0"
