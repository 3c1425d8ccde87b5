"""The HTTPS API's own language: requests, answers and problems."""
