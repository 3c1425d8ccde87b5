"""What the fuzz of the API makes right is right."""

from hourbell.api.job_models import BatchSchedules

from loadtest.fuzz_bodies import BATCH, batch


def test_bodies_of_many_are_right_and_half_of_them_create() -> None:
    jobs = [
        BatchSchedules.model_validate(batch(chance)).to_domain("key", dry_run=False)
        for chance in range(8 * BATCH)
    ]

    creates = [job for job in jobs if job.operation == "create"]
    assert len(creates) == len(jobs) / 2
    assert {len(job.items) for job in creates} == set(range(1, BATCH + 1))
    assert {job.operation for job in jobs} == {"create", "pause", "resume"}
