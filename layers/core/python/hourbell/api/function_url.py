"""Requests of a Lambda function URL, read as those of API Gateway's REST API."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

# Of the payload format that function URLs speak.
_VERSION: Final = "2.0"


def is_url_event(event: Mapping[str, Any]) -> bool:
    """Return whether an event came by a function URL."""
    return event.get("version") == _VERSION and "http" in _context(event)


def rest_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function URL's event in the REST API's form.

    The caller is who signed, as IAM says; nobody, where nobody did.
    """
    context = _context(event)
    http = context.get("http") or {}
    signed = (context.get("authorizer") or {}).get("iam") or {}
    path = event.get("rawPath") or "/"
    query = parse_qs(event.get("rawQueryString") or "", keep_blank_values=True)
    return {
        "httpMethod": http.get("method"),
        "path": path,
        "resource": path,
        "headers": event.get("headers") or {},
        "multiValueHeaders": None,
        "queryStringParameters": {name: each[-1] for name, each in query.items()},
        "multiValueQueryStringParameters": query,
        "pathParameters": None,
        "body": event.get("body"),
        "isBase64Encoded": event.get("isBase64Encoded", False),
        "requestContext": {
            "requestId": context.get("requestId"),
            "httpMethod": http.get("method"),
            "path": path,
            "identity": {
                "userArn": signed.get("userArn"),
                "sourceIp": http.get("sourceIp"),
            },
        },
    }


def url_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer for the REST API as a function URL takes it."""
    headers = {
        **(answer.get("headers") or {}),
        **{
            name: ", ".join(texts)
            for name, texts in (answer.get("multiValueHeaders") or {}).items()
        },
    }
    rest = {
        name: answer[name]
        for name in ("statusCode", "body", "isBase64Encoded")
        if name in answer
    }
    return {**rest, "headers": headers}


def _context(event: Mapping[str, Any]) -> Mapping[str, Any]:
    context: Mapping[str, Any] = event.get("requestContext") or {}
    return context
