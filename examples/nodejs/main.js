// Books an amount once for each occurrence: one file each, whose name is the key.
//
//   HOURBELL_API_URL=... HOURBELL_QUEUE_URL=... EFFECTS=books node main.js

import { link, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { Consumer } from "./hourbell.js";

const BOOKS = process.env.EFFECTS;

const consumer = new Consumer({
  apiUrl: process.env.HOURBELL_API_URL,
  queueUrl: process.env.HOURBELL_QUEUE_URL,
  region: process.env.AWS_REGION,
  service: process.env.HOURBELL_API_SERVICE,
  leaseSeconds: Number(process.env.HOURBELL_LEASE_SECONDS ?? 60),
});

/** Write a file whole, unless there is one: key and effect appear in one step. */
async function bookOnce(occurrenceId, document) {
  const draft = join(BOOKS, `.${occurrenceId}.${process.pid}.${Date.now()}`);
  await writeFile(draft, JSON.stringify(document), { flag: "wx" });
  try {
    await link(draft, join(BOOKS, `${occurrenceId}.json`));
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  } finally {
    await rm(draft);
  }
}

consumer.handler("report", async (message, context) => {
  const { account, seconds = 0, fails = 0 } = message.data.payload;
  console.log(`working ${message.id}`);
  if (context.attempt !== null && context.attempt <= fails) {
    throw new Error("the bank does not answer");
  }
  await sleep(1000 * seconds);
  // Work that takes its time looks whether it should still go on.
  if (context.cancelRequested || context.leaseLost) throw new Error("stopped");
  await bookOnce(message.id, { occurrence_id: message.id, account });
  console.log(`booked ${message.id}`);
  await sleep(1000 * seconds);
});

await mkdir(BOOKS, { recursive: true });
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => consumer.stop());
}
await consumer.run();
