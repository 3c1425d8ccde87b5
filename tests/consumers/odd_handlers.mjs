// A consumer in Node.js whose handler throws whatever the payload names. Its pauses are
// so many times longer than others as PAUSES says.

import { Consumer, Permanent, Throttled } from "../../examples/nodejs/hourbell.js";

class Mute extends Error {
  get message() {
    throw new TypeError("nobody knows");
  }
}

const THROWN = {
  nothing: undefined,
  bare: Object.create(null),
  symbol: Symbol("s"),
  mute: new Mute(),
  soon: new Throttled("busy", "soon"),
  unequal: new Throttled("busy", Symbol("s")),
  forever: new Throttled("busy", Number.POSITIVE_INFINITY),
  permanent: new Permanent("no"),
};

if (process.env.PAUSES) Math.random = () => Number(process.env.PAUSES);

const consumer = new Consumer({
  apiUrl: process.env.HOURBELL_API_URL,
  queueUrl: process.env.HOURBELL_QUEUE_URL,
  region: process.env.AWS_REGION,
});
consumer.handler("report", async (message) => {
  const { thrown } = message.data.payload;
  if (thrown) throw THROWN[thrown];
});
process.once("SIGTERM", () => consumer.stop());
await consumer.run();
