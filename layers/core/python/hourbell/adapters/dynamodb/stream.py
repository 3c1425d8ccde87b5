"""Read the rows that the timeline's stream brings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hourbell.adapters.dynamodb.row_items import (
    decode_occurrence,
    decode_row_key,
    is_attempt,
)
from hourbell.domain.errors import HourbellError
from hourbell.domain.occurrence import Occurrence, RowKey

StreamRecord = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A record that cannot be read.

    Attributes:
        message: what is wrong with it.
        error: what reading it raised.
        place: its keys, as far as they can be told.
    """

    message: str
    error: Exception
    place: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """What records of the stream say.

    Attributes:
        rows: their new images.
        sequences: key -> the sequence number of its first record.
        unreadable: keys of rows that cannot be read otherwise.
        faults: of these, and of records that are no rows of the timeline.
    """

    rows: list[Occurrence] = field(default_factory=list)
    sequences: dict[RowKey, str] = field(default_factory=dict)
    unreadable: list[RowKey] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def read_stream(records: Sequence[StreamRecord]) -> StreamBatch:
    """Read records of the stream; one that cannot be read hides no other."""
    batch = StreamBatch()
    for record in records:
        change = record["dynamodb"]
        try:
            key = decode_row_key(change["Keys"])
        except (HourbellError, KeyError, ValueError) as error:
            place = {"keys": change.get("Keys")}
            batch.faults.append(Fault("not a row of the timeline", error, place))
            continue
        if is_attempt(change["Keys"]):
            continue
        batch.sequences.setdefault(key, sequence_of(record))
        try:
            batch.rows.append(decode_occurrence(change["NewImage"]))
        except (HourbellError, KeyError, ValueError, TypeError) as error:
            place = {"partition": key.partition, "row": key.sort}
            batch.faults.append(Fault("an unreadable row", error, place))
            batch.unreadable.append(key)
    return batch


def sequence_of(record: StreamRecord) -> str:
    """Return the sequence number, from which on a stream can be read again."""
    return str(record["dynamodb"]["SequenceNumber"])
