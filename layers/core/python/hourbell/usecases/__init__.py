"""What Hourbell does, one module per use case, on the ports of ports.py."""
