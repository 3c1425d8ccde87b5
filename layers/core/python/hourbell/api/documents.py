"""What bodies and answers have in common, and fields that the domain judges."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from hourbell.api.json_text import write_json
from hourbell.domain.errors import Finding, InvalidInput

T = TypeVar("T")


class Body(BaseModel):
    """A body: what it does not know it refuses, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _nullable(schema: JsonSchemaValue) -> None:
    """Let null stand for what is left out in a model's schema."""
    null = {"type": "null"}
    required = schema.get("required", ())
    for name, kind in schema.get("properties", {}).items():
        kinds = kind.get("anyOf", [kind])
        if name in required or not kind.keys() & {"type", "enum", "$ref", "anyOf"}:
            continue
        if null not in kinds and "null" not in kind.get("type", ""):
            about = {
                word: kind.pop(word)
                for word in ("title", "description", "default", "examples")
                if word in kind
            }
            schema["properties"][name] = {"anyOf": [*kinds, null], **about}


class WholeBody(Body):
    """A body that says all of a thing: null counts as left out.

    Attributes:
        null_says: fields in which it does not: null is a value of theirs.
    """

    model_config = ConfigDict(json_schema_extra=_nullable)
    null_says: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _leave_out_null(cls, members: Any) -> Any:  # noqa: ANN401 - any JSON
        if not isinstance(members, Mapping):
            return members
        optional = {
            field.alias or name
            for name, field in cls.model_fields.items()
            if not field.is_required() and name not in cls.null_says
        }
        return {
            name: value
            for name, value in members.items()
            if value is not None or name not in optional
        }


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(frozen=True)

    @property
    def text(self) -> str:
        """The answer as JSON text."""
        return write_json(self.model_dump(by_alias=True))


def judged(judge: Callable[[Any], object]) -> AfterValidator:
    """Let one of the domain's readers judge a field; the value stays as it is."""

    def check(value: Any) -> Any:  # noqa: ANN401 - whatever the field's type is
        if value is None:
            return None
        try:
            judge(value)
        except InvalidInput as error:
            raise carried(*error.findings) from error
        return value

    return AfterValidator(check)


def carried(*findings: Finding) -> PydanticCustomError:
    """Carry findings; those without a field are about the one being checked."""
    return PydanticCustomError("findings", "not valid", {"findings": findings})


def _given(value: T) -> T:
    # Defaults are not validated: a None here was said.
    if value is None:
        message = "Found null; leave the field out, or give it a value."
        raise carried(Finding("", "wrong_type", message))
    return value


class _NeverNull:
    """Leaves null out of a field's schema."""

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of what is not null."""
        schema = handler(core_schema)
        kinds = [each for each in schema["anyOf"] if each != {"type": "null"}]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


Optional = Annotated[T | None, AfterValidator(_given), _NeverNull()]
"""A field of a change: it may be left out, but not be null."""

Instant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""An instant in an answer, as RFC 3339 writes it."""


def one_of(*kinds: Iterable[str]) -> WithJsonSchema:
    """Describe a text that is a member of one of the enumerations."""
    names = [str(name) for kind in kinds for name in kind]
    return WithJsonSchema({"type": "string", "enum": names})
