"""A role for each tenant: how it is asked for, and when again."""

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session
from botocore.session import Session
from hourbell.consumer import AssumedRoles, Consumer, Options, http
from hourbell.consumer.errors import HeldOff
from hourbell.consumer.http import Endpoint, NoCredentials, SignedTransport, Transport
from hourbell.consumer.tenants import TenantTransports

from tests.consumers.memory_queue import body_of, occurrence_id
from tests.consumers.rig import StandingClock
from tests.consumers.server import serving
from tests.consumers.worker_plane import WorkerPlane

TEMPLATE = "arn:aws:iam::111122223333:role/hourbell-tenant-{tenant}"
END = datetime(2099, 1, 1, 12, tzinfo=UTC)


class Sts:
    """Gives out keys that are called like their role and their number."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.error: Exception | None = None

    def assume_role(self, **call: Any) -> dict[str, Any]:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        name = f"{call['RoleArn'].rsplit('-', 1)[-1]}{len(self.calls)}"
        keys = {"AccessKeyId": name, "SecretAccessKey": "s", "SessionToken": "t"}
        return {"Credentials": {**keys, "Expiration": END}}


def key_of(role: Any) -> str:
    return str(role.get_credentials().get_frozen_credentials().access_key)


def test_a_role_is_assumed_at_the_first_use_and_once() -> None:
    sts = Sts()
    role = AssumedRoles(TEMPLATE, client=sts)("north")
    assert sts.calls == []
    assert [key_of(role), key_of(role)] == ["north1", "north1"]
    assert sts.calls == [
        {
            "RoleArn": "arn:aws:iam::111122223333:role/hourbell-tenant-north",
            "RoleSessionName": "hourbell-consumer",
            "DurationSeconds": 3_600,
        }
    ]


def test_what_a_role_asks_for_is_told_with_the_tenants_name() -> None:
    sts = Sts()
    roles = AssumedRoles(
        TEMPLATE,
        external_id="hourbell:{tenant}",
        tags={"tenant": "{tenant}", "by": "platform"},
        session_name="night",
        duration_seconds=1_800,
        client=sts,
    )
    key_of(roles("south"))
    (call,) = sts.calls
    assert call["ExternalId"] == "hourbell:south"
    assert call["Tags"] == [
        {"Key": "tenant", "Value": "south"},
        {"Key": "by", "Value": "platform"},
    ]
    assert (call["RoleSessionName"], call["DurationSeconds"]) == ("night", 1_800)


def test_credentials_are_renewed_before_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sts = Sts()
    role = AssumedRoles(TEMPLATE, client=sts)("north")
    credentials = role.get_credentials()
    minutes = [44, 46]

    def now() -> datetime:
        return END.replace(hour=11, minute=minutes[0])

    monkeypatch.setattr(credentials, "_time_fetcher", now)
    assert [key_of(role), key_of(role)] == ["north1", "north1"]
    minutes.pop(0)
    assert key_of(role) == "north2"
    # Who cannot be asked just then has some minutes more.
    sts.error = ClientError({"Error": {"Code": "Throttling"}}, "AssumeRole")
    assert key_of(role) == "north2"


def test_a_role_that_may_not_be_assumed_is_no_credentials() -> None:
    sts = Sts()
    sts.error = ClientError({"Error": {"Code": "AccessDenied"}}, "AssumeRole")
    role = AssumedRoles(TEMPLATE, client=sts)("north")
    transport = SignedTransport(Endpoint("http://127.0.0.1:1", "eu-west-1"), role)
    with pytest.raises(NoCredentials, match="AccessDenied"):
        transport.post("/v1/occurrences/claim", b"{}")


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"role_arn": "arn:aws:iam::111122223333:role/jobs"}, "without {tenant}"),
        ({"duration_seconds": 1_799}, "duration_seconds is 1799"),
        ({"duration_seconds": 43_201}, "duration_seconds is 43201"),
    ],
)
def test_roles_that_cannot_work_are_refused(
    members: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        AssumedRoles(**{"role_arn": TEMPLATE, "client": Sts(), **members})


def test_sts_is_called_by_the_environments_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert callable(AssumedRoles(TEMPLATE))


@pytest.mark.parametrize(("cached", "count"), [(1_000, 2), (1, 4)])
def test_the_queue_is_the_consumers_own_and_each_call_its_tenants(
    cached: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sts = Sts()
    pools: list[object] = []

    def pool(**given: Any) -> URLLib3Session:
        pools.append(given)
        return URLLib3Session(**given)

    monkeypatch.setattr(http, "URLLib3Session", pool)
    with serving() as fake:
        for name, value in fake.environment().items():
            monkeypatch.setenv(name, value)
        names = [occurrence_id(number) for number in range(4)]
        rows = [fake.plane.add(name) for name in names]
        tenants = ["north", "south"] * 2
        fake.queue.put(
            *[
                body_of(name, tenant=tenant)
                for name, tenant in zip(names, tenants, strict=True)
            ]
        )
        own = Session()
        own.set_credentials("own", "secret")
        consumer = Consumer.connect(
            session=own,
            tenants=AssumedRoles(TEMPLATE, client=sts),
            options=Options(wait_seconds=0, concurrency=1, cached_tenants=cached),
        )
        consumer.handler("report")(lambda *_: None)
        fake.queue.on_receive = lambda count: None if count else consumer.stop()
        assert consumer.run(signals=False) == 0
    assert {row.state for row in rows} == {"SUCCEEDED"}
    signers: dict[str, set[str]] = {}
    for key, path in fake.signers:
        signers.setdefault(path, set()).add(key)
    roles = [call["RoleArn"].rsplit("-", 1)[-1] for call in sts.calls]
    # In turn; where there is place for one, each is asked for again.
    assert roles == ["north", "south", "north", "south"][:count]
    assert len(pools) == 1
    keys = {f"{role}{number}" for number, role in enumerate(roles, 1)}
    assert signers == {
        "/": {"own"},
        "/v1/occurrences/claim": keys,
        "/v1/occurrences/complete": keys,
    }


def test_who_waited_for_a_failure_has_that_one_and_asks_for_no_other() -> None:
    sts = Sts()
    sts.error = ClientError({"Error": {"Code": "AccessDenied"}}, "AssumeRole")
    times = [10.0]
    role = AssumedRoles(TEMPLATE, client=sts, now=lambda: times[-1])("north")
    for _ in range(3):
        with pytest.raises(ClientError, match="AccessDenied"):
            key_of(role)
    assert len(sts.calls) == 1
    sts.error = None
    times.append(12.0)
    assert key_of(role) == "north2"


def test_credentials_that_cannot_sign_are_none() -> None:
    class Pair:
        def get_credentials(self) -> Any:
            return self

        def get_frozen_credentials(self) -> tuple[str, str]:
            return ("a-key", "a-secret")

    transport = SignedTransport(Endpoint("http://127.0.0.1:1", "eu-west-1"), Pair())
    with pytest.raises(NoCredentials):
        transport.post("/v1/occurrences/claim", b"{}")


def test_who_signs_is_asked_for_anew_where_nobody_could_sign() -> None:
    clock = StandingClock()
    plane = WorkerPlane(clock.now)
    own = SignedTransport(Endpoint("http://127.0.0.1:1", "eu-west-1"), Session())
    none: Any = None
    makes: list[Transport] = [own.signed_by(none), plane]
    transports = TenantTransports(lambda _: makes.pop(0), clock)
    with pytest.raises(HeldOff):
        transports.of("north").post("/v1/occurrences/complete", b'{"items": []}')
    clock.time += 5
    assert transports.of("north").post("/v1/complete", b'{"items": []}').status == 200
