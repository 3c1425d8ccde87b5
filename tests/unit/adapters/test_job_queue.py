"""Jobs on SQS."""

import logging
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from hourbell import bootstrap
from hourbell.adapters import sqs
from hourbell.adapters.backoff import Allowance
from hourbell.adapters.sqs import SqsJobQueue
from hourbell.domain.errors import HourbellError, Permanent, Transient

from tests.conformance.worlds import still_backoff

DENIED = ClientError({"Error": {"Code": "KmsDisabled"}}, "SendMessageBatch")
SILENT = ConnectTimeoutError(endpoint_url="http://somewhere")


class Sqs:
    """Takes nothing."""

    def __init__(self, fault: Exception) -> None:
        self._fault = fault
        self.calls = 0

    def send_message_batch(self, **_: Any) -> dict[str, Any]:
        self.calls += 1
        raise self._fault


@pytest.mark.parametrize(
    ("fault", "raised", "calls"), [(DENIED, Permanent, 1), (SILENT, Transient, 3)]
)
def test_a_job_that_the_queue_does_not_take_is_in_the_log(
    fault: Exception,
    raised: type[HourbellError],
    calls: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client: Any = Sqs(fault)
    queue = SqsJobQueue(client, "http://jobs", still_backoff(attempts=3))
    with pytest.raises(raised):
        queue.put("job-1")
    (record,) = caplog.records
    assert (record.levelno, record.__dict__["job_id"]) == (logging.ERROR, "job-1")
    assert client.calls == calls


def test_a_request_has_no_time_beyond_its_own_for_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {
        **{f"TABLE_{each}": "x" for each in ("SCHEDULES", "TIMELINE", "CONTROL")},
        "JOBS_QUEUE_URL": "http://jobs",
        "QUEUE_ARN_BASE": "arn:aws:sqs:eu-central-1:123456789012:x",
    }
    for name, value in names.items():
        monkeypatch.setenv(f"HOURBELL_{name}", value)
    client, allowance = Sqs(SILENT), Allowance(0)
    allowance.begin()
    monkeypatch.setattr(sqs, "connect", lambda: client)
    monkeypatch.setattr(bootstrap, "request_allowance", lambda: allowance)
    office = bootstrap.api_ports.__wrapped__().office
    with pytest.raises(Transient):
        office.queue.put("job-1")
    assert client.calls == 1
