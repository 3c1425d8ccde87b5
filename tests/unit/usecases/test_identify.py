"""Who is calling."""

import pytest
from hourbell.adapters.memory import MemoryDirectory, MemoryStore
from hourbell.domain.definition import Tenant, TenantState, Tier
from hourbell.domain.errors import Forbidden, InvalidInput
from hourbell.usecases.identify import (
    Caller,
    Operator,
    admit_operator,
    admit_tenant,
    identify,
    normalize_principal,
    registered_form,
)

ACCOUNT = "123456789012"
ANN = f"arn:aws:iam::{ACCOUNT}:user/ann"


@pytest.mark.parametrize(
    ("arn", "principal"),
    [
        (ANN, f"{ACCOUNT}:user/ann"),
        (f"arn:aws:iam::{ACCOUNT}:user/team/a/ann", f"{ACCOUNT}:user/team/a/ann"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/Job/i-0abc", f"{ACCOUNT}:role/Job"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/Job/a/b", f"{ACCOUNT}:role/Job"),
        (f"arn:aws:iam::{ACCOUNT}:role/Job", f"{ACCOUNT}:role/Job"),
        (f"arn:aws:iam::{ACCOUNT}:role/service-role/x/Job", f"{ACCOUNT}:role/Job"),
        (
            f"arn:aws:sts::{ACCOUNT}:federated-user/fay",
            f"{ACCOUNT}:federated-user/fay",
        ),
        (f"arn:aws-cn:iam::{ACCOUNT}:user/ann", f"{ACCOUNT}:user/ann"),
        (f"arn:aws-us-gov:iam::{ACCOUNT}:user/ann", f"{ACCOUNT}:user/ann"),
    ],
)
def test_an_identity_has_one_registered_form(arn: str, principal: str) -> None:
    assert normalize_principal(arn) == principal


@pytest.mark.parametrize(
    "arn",
    [
        "",
        "ann",
        f"arn:aws:iam::{ACCOUNT}:root",
        f"arn:aws:iam::{ACCOUNT}:group/admins",
        f"arn:aws:iam::{ACCOUNT}:assumed-role/Job/s",
        f"arn:aws:sts::{ACCOUNT}:user/ann",
        "arn:aws:iam::12345:user/ann",
        "arn:aws:iam::12345678901\u0662:user/ann",
        f"arn:aws:iam::{ACCOUNT}:user/",
        f"arn:aws:s3::{ACCOUNT}:user/ann",
        f"arn:evil:iam::{ACCOUNT}:user/ann",
        f" {ANN}",
        f"{ANN}\n",
    ],
)
def test_anything_else_is_nobody(arn: str) -> None:
    with pytest.raises(Forbidden) as caught:
        normalize_principal(arn)
    assert caught.value.code == "forbidden"


@pytest.fixture
def directory() -> MemoryDirectory:
    directory = MemoryDirectory(MemoryStore())
    directory.register_tenant(Tenant("acme", Tier.BASIC), [f"{ACCOUNT}:user/ann"])
    directory.register_tenant(
        Tenant("dodo", Tier.BASIC, TenantState.SUSPENDED), [f"{ACCOUNT}:user/dodo"]
    )
    return directory


def test_a_registered_caller_gets_its_tenant(directory: MemoryDirectory) -> None:
    caller = identify(directory, ANN, "api 203.0.113.7")
    assert isinstance(caller, Caller)
    assert caller.tenant == Tenant("acme", Tier.BASIC)
    assert caller.principal == f"{ACCOUNT}:user/ann"
    assert (caller.arn, caller.source) == (ANN, "api 203.0.113.7")


@pytest.mark.parametrize("arn", [None, "", f"arn:aws:iam::{ACCOUNT}:user/eve"])
def test_an_unknown_caller_is_refused(
    directory: MemoryDirectory, arn: str | None
) -> None:
    with pytest.raises(Forbidden) as caught:
        identify(directory, arn)
    assert caught.value.code == "forbidden"


def test_a_name_of_another_account_is_not_the_same(
    directory: MemoryDirectory,
) -> None:
    with pytest.raises(Forbidden):
        identify(directory, "arn:aws:iam::999999999999:user/ann")


def test_a_suspended_tenant_is_refused_by_name(directory: MemoryDirectory) -> None:
    with pytest.raises(Forbidden) as caught:
        identify(directory, f"arn:aws:iam::{ACCOUNT}:user/dodo")
    assert caught.value.code == "tenant_suspended"


def test_the_platform_role_is_told_from_tenants(directory: MemoryDirectory) -> None:
    # Whatever is registered: the platform role is no tenant.
    operators = frozenset({f"{ACCOUNT}:user/ann"})
    found = identify(directory, ANN, "api 203.0.113.7", operators)
    assert found == Operator(f"{ACCOUNT}:user/ann", ANN, "api 203.0.113.7")
    assert admit_operator(found) is found
    with pytest.raises(Forbidden):
        admit_tenant(found)


def test_a_tenant_is_not_the_platform_role(directory: MemoryDirectory) -> None:
    found = identify(directory, ANN)
    assert admit_tenant(found) is found
    with pytest.raises(Forbidden):
        admit_operator(found)


def test_nobody_is_identified_before_the_directory_is_asked() -> None:
    class Silent(MemoryDirectory):
        def tenant_of(self, principal: str) -> Tenant | None:
            raise AssertionError(principal)

    with pytest.raises(Forbidden):
        identify(Silent(MemoryStore()), f"arn:aws:iam::{ACCOUNT}:root")


@pytest.mark.parametrize(
    "text",
    [
        f"{ACCOUNT}:role/Job",
        f"{ACCOUNT}:user/team/ann",
        f"{ACCOUNT}:federated-user/fay",
    ],
)
def test_the_registered_form_may_be_given_itself(text: str) -> None:
    assert registered_form(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "*",
        ACCOUNT,
        f"arn:aws:iam::{ACCOUNT}:root",
        f"{ACCOUNT}:root",
        f"arn:aws:iam::{ACCOUNT}:role/*",
        f"arn:aws:iam::{ACCOUNT}:role/Job?",
        f"arn:aws:iam::{ACCOUNT}:user/a*",
        f"arn:aws:sts::{ACCOUNT}:assumed-role//s",
        f"arn:aws:iam::{ACCOUNT}:role/",
        f"arn:aws:iam::{ACCOUNT}:role/path/",
        f"{ACCOUNT}:role/path/Job",
        f"{ACCOUNT}:user/a//b",
        f"{ACCOUNT}:user/a\n",
        f"arn:aws:iam::{ACCOUNT}:user/\u00e4nn",
    ],
)
def test_nothing_is_registered_that_nobody_can_sign_as(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        registered_form(text, field="principals.3")
    (finding,) = caught.value.findings
    assert (finding.field, finding.code) == ("principals.3", "invalid_principal")
