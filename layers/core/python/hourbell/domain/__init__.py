"""The rules of scheduling: pure values and functions, no AWS, no clock."""
