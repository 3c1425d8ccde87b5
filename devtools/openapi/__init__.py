"""The API's OpenAPI document: made from the routes, and compared with releases."""
