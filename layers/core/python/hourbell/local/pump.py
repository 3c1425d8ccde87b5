"""The stream pump: reads table streams and calls functions, as Lambda would.

    python -m hourbell.local.pump CONFIG

It stands in for the engine's own stream mapping, which drops failed records and
lets one slow handler hold up every queue. One reader follows each shard;
`ParallelizationFactor` lanes call the function, each item's records in one lane and
in order. What is settled is written to the checkpoint file, where the next start
goes on; after a crash records may come twice, none is left out.
"""

import logging
import os
import sys
import threading
import traceback
from pathlib import Path

from hourbell.local.pump_config import MappingConfig, PumpConfig, load_config
from hourbell.local.shard import Checkpoints, Shard
from hourbell.local.wire import STREAMS, Wire

log = logging.getLogger("hourbell.local.pump")


def shards_of(
    mapping: MappingConfig, wire: Wire, checkpoints: Checkpoints
) -> list[Shard]:
    """Return the shards of a mapping's stream; the engine never splits them."""
    body = {"StreamArn": mapping.stream_arn}
    found = wire.call("dynamodb", f"{STREAMS}.DescribeStream", body)
    return [
        Shard(mapping, shard["ShardId"], wire, checkpoints)
        for shard in found["StreamDescription"]["Shards"]
    ]


def start(config: PumpConfig, wire: Wire) -> None:
    """Follow every mapping's stream in threads of this process."""
    checkpoints = Checkpoints(Path(config.checkpoint_file))
    for mapping in config.mappings:
        for shard in shards_of(mapping, wire, checkpoints):
            shard.start()


def _end_on_bug(failure: threading.ExceptHookArgs) -> None:
    """End the process when a thread fails: the supervisor starts a fresh one."""
    traceback.print_exception(failure.exc_value)
    sys.stderr.flush()
    os._exit(1)


def main() -> None:
    """Run until killed."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    threading.excepthook = _end_on_bug
    config = load_config(Path(sys.argv[1]))
    wire = Wire(
        config.endpoint_url,
        config.region,
        os.environ["AWS_ACCESS_KEY_ID"],
        os.environ["AWS_SECRET_ACCESS_KEY"],
    )
    start(config, wire)
    Path(config.ready_file).touch()
    log.info("pumping %d mappings", len(config.mappings))
    threading.Event().wait()


if __name__ == "__main__":
    main()
