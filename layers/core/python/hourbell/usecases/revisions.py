"""What `If-Match` compares."""

from hourbell.domain.errors import PreconditionFailed


def stale(current: int) -> PreconditionFailed:
    """Return the error of a change that was made for another revision."""
    return PreconditionFailed(
        f"The current revision is {current}.", members={"revision": current}
    )


def another(current: int) -> PreconditionFailed:
    """Return the error of a change that was made for something else."""
    return PreconditionFailed(
        f"The ETag is another schedule's; this one's revision is {current}, too.",
        members={"revision": current},
    )
