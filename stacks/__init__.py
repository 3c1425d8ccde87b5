"""The AWS resources of a Hourbell deployment, as CDK stacks.

They know the tables from schemas/tables.json and the functions by their folders; no
code of the application is imported here.
"""
