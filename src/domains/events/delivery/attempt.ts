// Sends an event to a sink once, and computes the delay before the next attempt.
import type { App } from '#app.ts'
import { OutgoingError } from '#lib/net/outgoing.ts'
import { sinkRequest } from './cloud-event.ts'
import type { AttemptResult, Payload } from './deliveries.model.ts'
import type { Target } from './sending.store.ts'

export type Outcome = {
  result: AttemptResult
  /** HTTP status of the response. 0 if there was no response. */
  status: number
  durationMs: number
  /** Delay that the sink has requested, in milliseconds. 0 if the sink requested none. */
  waitMs: number
}

/** Limit on the delay that a sink can request, in milliseconds. */
const longestWaitMs = 24 * 60 * 60 * 1000

/** Sends an event to a sink. An error of the sink is a result, and does not reject. */
export async function attempt(
  app: Pick<App, 'keyring' | 'cipher' | 'eventTable' | 'sinks' | 'config' | 'clock'>,
  url: string,
  target: Target,
  event: Payload,
): Promise<Outcome> {
  const now = app.clock().getTime()
  const { headers, body } = await sinkRequest(app, url, target, event, now)
  const began = performance.now()
  const outcome = await app.sinks.post(target.sink, headers, body, app.config.deliveryTimeoutMs).then(
    ({ status, retryAfter }) => judge(status, retryAfter, now),
    (error: unknown) => ({ result: resultOf(error), status: 0, waitMs: 0 }),
  )
  return { ...outcome, durationMs: Math.round(performance.now() - began) }
}

function judge(status: number, retryAfter: string, now: number): Omit<Outcome, 'durationMs'> {
  if (status >= 200 && status < 300) return { result: 'delivered', status, waitMs: 0 }
  if (status === 410) return { result: 'gone', status, waitMs: 0 }
  const asked = waitOf(retryAfter, now)
  const slowed = status === 429 || (status === 503 && asked > 0)
  return { result: slowed ? 'slowed' : 'refused', status, waitMs: slowed ? asked : 0 }
}

/** Delay in milliseconds from a Retry-After header, which contains a number of seconds or a date. */
function waitOf(text: string, now: number): number {
  const wait = /^\d{1,9}$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(wait) ? 0 : Math.min(Math.max(wait, 0), longestWaitMs)
}

function resultOf(error: unknown): AttemptResult {
  if (!(error instanceof OutgoingError)) return 'unreachable'
  const { reason } = error
  const told = reason === 'timeout' || reason === 'private-address' || reason === 'insecure' || reason === 'bad-url'
  return told ? reason : 'unreachable'
}

/**
 * Delay in milliseconds after a number of consecutive failures. Doubles with each failure. A random part of up to half is
 * subtracted.
 */
export function backoffMs(
  { deliveryRetryMinMs, deliveryRetryMaxMs }: Pick<App['config'], 'deliveryRetryMinMs' | 'deliveryRetryMaxMs'>,
  failures: number,
): number {
  const wait = Math.min(deliveryRetryMinMs * 2 ** Math.min(failures - 1, 40), deliveryRetryMaxMs)
  return wait * (1 - Math.random() / 2)
}
