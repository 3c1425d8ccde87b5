// A consumer of Hourbell's messages: receive, claim, work with heartbeats, complete or
// fail, delete. docs/consumers.md explains each step.

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { Sha256 } from "@aws-crypto/sha256-js";
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { defaultProvider } from "@aws-sdk/credential-provider-node";
import { HttpRequest } from "@smithy/protocol-http";
import { SignatureV4 } from "@smithy/signature-v4";

const DUE = "com.hourbell.occurrence.due.v1";
const TEST = "com.hourbell.handler.test.v1";
const ID = /^sch[0-9a-z]{26}\.v\d+\.\d{8}T\d{6}Z(\.r[0-9a-f]{16})?$/;
const TIMEOUT_MS = 15_000;
const CLAIM_TRIES = 4;
const MAX_RETRY_AFTER = 86_400;

/** No further attempt would succeed. */
export class Permanent extends Error {}

/** The target asks for patience, for `retryAfterSeconds` if it says so. */
export class Throttled extends Error {
  constructor(message, retryAfterSeconds) {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The API did not answer, or asked to be called again. */
class NoAnswer extends Error {}

/** A whole request was refused, and would be again. */
class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const now = () => performance.now() / 1000;

/** How many ms to wait after so many failures: exponential, with full jitter. */
const backOff = (failures, cap = 5) =>
  1000 * Math.random() * Math.min(cap, 0.2 * 2 ** Math.min(failures, 20));

/** The worker routes. */
class Api {
  constructor({ url, region, service, timeoutMs }) {
    this.url = url.replace(/\/$/, "");
    this.timeoutMs = timeoutMs;
    const credentials = defaultProvider();
    this.signer = new SignatureV4({ credentials, region, service, sha256: Sha256 });
  }

  /** Send one request, once; return its results, one for each item. */
  async post(route, document) {
    const url = new URL(`${this.url}/v1/occurrences/${route}`);
    const body = JSON.stringify(document);
    const request = new HttpRequest({
      method: "POST",
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      headers: { host: url.host, "content-type": "application/json" },
      body,
    });
    let response, text;
    try {
      // Whoever gives out credentials may not answer either.
      const { headers } = await this.signer.sign(request);
      const signal = AbortSignal.timeout(this.timeoutMs);
      response = await fetch(url, { method: "POST", headers, body, signal });
      text = await response.text();
    } catch (error) {
      throw new NoAnswer(`${route}: ${error.message}`);
    }
    const { status } = response;
    if (response.ok) {
      const results = resultsOf(text);
      if (results?.length === document.items.length) return results;
      throw new NoAnswer(`${route}: ${text.slice(0, 200)} is no answer`);
    }
    const isTransient = status >= 500 || [408, 425, 429].includes(status);
    const message = `${route}: HTTP ${status} ${text.slice(0, 200)}`;
    throw isTransient ? new NoAnswer(message) : new Refused(message, status);
  }
}

/** Receives batches of up to ten messages, and works on each batch at once. */
export class Consumer {
  #stopping = new AbortController();

  constructor({ queueUrl, apiUrl, region, service = "execute-api", leaseSeconds = 60 }) {
    this.queueUrl = queueUrl;
    this.leaseSeconds = leaseSeconds;
    this.worker = `${hostname()}:${process.pid}`.slice(0, 128);
    this.sqs = new SQSClient({ region });
    // A request that hangs must not take the time of the next heartbeats.
    const timeoutMs = Math.min(TIMEOUT_MS, 500 * leaseSeconds);
    this.api = new Api({ url: apiUrl, region, service, timeoutMs });
    this.handlers = new Map();
  }

  /** Let `work(message, context)` do what the handler of this name is to do. */
  handler(name, work) {
    this.handlers.set(name, work);
  }

  /** Receive no more; what runs goes on to its end. */
  stop() {
    this.#stopping.abort();
  }

  /** Work until stopped. */
  async run() {
    let failures = 0;
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#work(await this.#receive());
        failures = 0;
      } catch (error) {
        if (this.#stopping.signal.aborted) break;
        console.error(error.message);
        failures += 1;
        // Each receive of a message counts towards the queue's dead-letter queue: while
        // nothing can be claimed, few are made.
        await this.#pause(1000 + backOff(failures, 60));
      }
    }
  }

  /** Wait, but not past a stop. */
  async #pause(ms) {
    const { signal } = this.#stopping;
    await sleep(ms, undefined, { signal }).catch(() => {});
  }

  async #receive() {
    const answer = await this.sqs.send(
      new ReceiveMessageCommand({
        QueueUrl: this.queueUrl,
        MaxNumberOfMessages: 10,
        WaitTimeSeconds: 20,
      }),
      { abortSignal: this.#stopping.signal },
    );
    return answer.Messages ?? [];
  }

  async #work(messages) {
    const works = await this.#read(messages);
    const tracked = works.filter((work) => work.isTracked);
    const running = works.filter((work) => !work.isTracked);
    const beats = setInterval(() => this.#beat(running), (1000 * this.leaseSeconds) / 3);
    let fault;
    try {
      if (tracked.length) await this.#claim(tracked, running);
    } catch (error) {
      // UNTRACKED work needs no claim.
      fault = error;
    }
    try {
      await Promise.all(running.map((work) => this.#perform(work)));
    } finally {
      clearInterval(beats);
    }
    if (fault) throw fault;
  }

  /** Group the copies of a message; leave what is not understood, or not handled. */
  async #read(messages) {
    const works = new Map();
    const tests = [];
    for (const { Body, ReceiptHandle } of messages) {
      let event;
      try {
        event = JSON.parse(Body);
      } catch {
        event = {};
      }
      if (event?.type === TEST) {
        tests.push(ReceiptHandle);
      } else if (!isDue(event) || !this.handlers.has(event.data.handler)) {
        console.error(`left: ${Body.slice(0, 200)}`);
      } else if (works.has(event.id)) {
        const work = works.get(event.id);
        work.receipts.push(ReceiptHandle);
        if (event.data.send > work.event.data.send) work.event = event;
      } else {
        works.set(event.id, {
          event,
          isTracked: event.data.tracking !== "UNTRACKED",
          token: randomBytes(24).toString("base64url"),
          receipts: [ReceiptHandle],
          context: { cancelRequested: false, leaseLost: false, attempt: null },
        });
      }
    }
    await this.#delete(tests);
    return [...works.values()];
  }

  /** Claim in one call; add what is to be run to the others. */
  async #claim(works, running) {
    const since = now();
    const document = {
      worker: this.worker,
      lease_seconds: this.leaseSeconds,
      items: works.map((work) => ({ ...named(work), send: work.event.data.send })),
    };
    let results;
    try {
      results = await this.#claimPatiently(document);
    } catch (error) {
      if (error.status !== 400 || works.length === 1) throw error;
      await this.#claimSingly(works, running);
      return;
    }
    const done = [];
    for (const [place, result] of results.entries()) {
      const { answer, reason, attempt, lease_token, state } = result;
      // Rows outlive messages: what has none is another tenant's.
      const isUnknown = reason === "EXPIRED" && !state;
      const work = works[place];
      if (answer === "RUN") {
        work.leaseEnds = since + this.leaseSeconds;
        work.context.attempt = attempt;
        // Another one than was drawn, if the attempt of an earlier try is over.
        work.token = lease_token ?? work.token;
        running.push(work);
      } else if (["SKIP", "BUSY", "WAIT"].includes(answer) && !isUnknown) {
        done.push(...work.receipts);
      } else {
        console.error(`${work.event.id}: ${answer} ${reason}, left in the queue`);
      }
    }
    await this.#delete(done);
  }

  /** One of them is no occurrence's, for which the others are not to blame. */
  async #claimSingly(works, running) {
    for (const work of works) {
      try {
        await this.#claim([work], running);
      } catch (error) {
        console.error(error.message);
        if (error instanceof NoAnswer) return;
      }
    }
  }

  /** With the same tokens a repeated claim is the same claim. */
  async #claimPatiently(document) {
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.api.post("claim", document);
      } catch (error) {
        if (!(error instanceof NoAnswer) || failures === CLAIM_TRIES) throw error;
        await this.#pause(backOff(failures));
        if (this.#stopping.signal.aborted) throw error;
      }
    }
  }

  async #perform(work) {
    let failure = null;
    try {
      await this.handlers.get(work.event.data.handler)(work.event, work.context);
    } catch (error) {
      failure = failureOf(error);
      console.error(`${work.event.id}: ${failure.message}`);
    }
    work.isOver = true;
    const isDone = work.isTracked ? await this.#tell(work, failure) : !failure;
    if (isDone) await this.#delete(work.receipts);
  }

  /** Complete or fail until there is an answer, for as long as the lease lives. */
  async #tell(work, failure) {
    if (work.context.leaseLost) return true;
    const item = failure ? { ...named(work), error: failure } : named(work);
    for (let failures = 1; ; failures += 1) {
      try {
        const [{ status }] = await this.api.post(failure ? "fail" : "complete", {
          items: [item],
        });
        // 404 and 409: another attempt has it, or it is over.
        if (status < 500) return true;
      } catch (error) {
        console.error(error.message);
        if (!(error instanceof NoAnswer)) return false;
      }
      if (now() >= work.leaseEnds) return false;
      await sleep(backOff(failures));
    }
  }

  /** Extend the leases of what runs, and hide its messages for as long. */
  async #beat(running) {
    const works = running.filter((work) => !work.isOver && !work.context.leaseLost);
    // Side by side: a heartbeat that hangs must not have UNTRACKED work begun again.
    await Promise.all([
      this.#extend(works.filter((work) => work.isTracked)),
      this.#hide(works.flatMap((work) => work.receipts)),
    ]);
  }

  async #extend(tracked) {
    if (!tracked.length) return;
    const since = now();
    try {
      const document = { lease_seconds: this.leaseSeconds, items: tracked.map(named) };
      const results = await this.api.post("heartbeat", document);
      for (const [place, result] of results.entries()) {
        const work = tracked[place];
        if (result.status === 200) {
          work.leaseEnds = since + this.leaseSeconds;
          work.context.cancelRequested ||= result.cancel_requested;
        } else if (result.status < 500 && !work.isOver) {
          work.context.leaseLost = true;
        }
      }
    } catch (error) {
      console.error(`heartbeat: ${error.message}`);
    }
  }

  async #hide(receipts) {
    try {
      await this.#inTens(receipts, ChangeMessageVisibilityBatchCommand, {
        VisibilityTimeout: this.leaseSeconds,
      });
    } catch (error) {
      console.error(`visibility: ${error.message}`);
    }
  }

  /** What is not deleted comes again, and is skipped then. */
  async #delete(receipts) {
    try {
      await this.#inTens(receipts, DeleteMessageBatchCommand, {});
    } catch (error) {
      console.error(`delete: ${error.message}`);
    }
  }

  async #inTens(receipts, Command, members) {
    for (let start = 0; start < receipts.length; start += 10) {
      const Entries = receipts
        .slice(start, start + 10)
        .map((ReceiptHandle, place) => ({ Id: `${place}`, ReceiptHandle, ...members }));
      await this.sqs.send(new Command({ QueueUrl: this.queueUrl, Entries }));
    }
  }
}

const named = ({ event, token }) => ({ occurrence_id: event.id, lease_token: token });

// One id that is none has a whole claim refused, and with it the others.
const isDue = (event) =>
  event?.type === DUE &&
  typeof event.id === "string" &&
  ID.test(event.id) &&
  Number.isInteger(event.data?.send);

/** The results of an answer; undefined if it is none. */
const resultsOf = (text) =>
  attempted(() => {
    const { results } = JSON.parse(text);
    return results.every((each) => each !== null && typeof each === "object")
      ? results
      : undefined;
  });

/** What a function returns; undefined if it throws. */
function attempted(step) {
  try {
    return step();
  } catch {
    return undefined;
  }
}

/** Cut a text to what the API takes; no half of a character is left at its end. */
const cut = (text, most) => String(text).slice(0, most).toWellFormed();

function failureOf(error) {
  // Anything can be thrown, also what has no text.
  const failure = {
    class: "RETRYABLE",
    type: attempted(() => cut(error.constructor.name, 128)) ?? typeof error,
    message: attempted(() => cut(error?.message ?? error, 1024)) ?? "(it has no text)",
  };
  if (error instanceof Permanent) failure.class = "PERMANENT";
  if (error instanceof Throttled) {
    failure.class = "THROTTLED";
    const wait = () => Math.ceil(Number(error.retryAfterSeconds ?? Number.NaN));
    const seconds = attempted(wait) ?? Number.NaN;
    if (!Number.isNaN(seconds)) {
      failure.retry_after_seconds = Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER);
    }
  }
  return failure;
}
