"""The `hourbell` command line."""
