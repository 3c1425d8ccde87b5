"""What dev.py is made of: the standard library only, so that it runs anywhere."""
