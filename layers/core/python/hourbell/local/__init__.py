"""The local stack: the whole system on an embedded engine."""
