// A client that has got no answer sends its request again, and cannot know whether it was carried out. Where it gives its
// request a name, the name is kept in the transaction of the change: both are there, or neither.
import { createHash } from 'node:crypto'
import type { Db, Tx } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import type { Sealer } from '#lib/crypto/seal.ts'
import { AppError } from '#lib/errors.ts'
import { findRequest, insertRequest, setAnswer } from './repeats.store.ts'

/** `key` is the caller's own; `content` is all that makes the request what it is. */
export type NamedRequest = { caller: string; key: string; content: readonly (string | Uint8Array)[] }

/** What is to be known of a named request: nothing, that it was carried out, or its answer too. */
export type Known = 'new' | 'carried out' | { answer: Uint8Array }

export type Repeats = {
  /** Throws INVALID_ARGUMENT when the caller has given the name to another request. */
  find(request: NamedRequest): Promise<Known>
  /** To be called in the transaction of the change, before it. `false` when the request was carried out meanwhile. */
  claim(tx: Tx, request: NamedRequest): Promise<boolean>
  /** Keeps the answer of a request that was carried out, unless it is very long or its caller has had many kept today. */
  answer(request: NamedRequest, answer: Uint8Array): Promise<void>
}

const keptMs = 24 * 60 * 60_000
const maxAnswerBytes = 256 * 1024
/** How much of the answers to one caller a node keeps in a day. */
const bytesPerCaller = 16 * 1024 * 1024
const mostCallers = 10_000

export function createRepeats(db: Db, sealer: Sealer, clock: () => Date): Repeats {
  const kept = createAllowance(clock)
  return {
    async find(request) {
      const row = await findRequest(db, idOf(request), clock().toISOString())
      if (!row) return 'new'
      if (row.requestHash !== hashOf(request.content)) throw reused()
      const answer = row.answer === null ? undefined : sealer.unseal('request-answer', row.answer)
      return answer ? { answer } : 'carried out'
    },

    claim(tx, request) {
      const now = clock()
      return insertRequest(tx, {
        id: idOf(request),
        requestHash: hashOf(request.content),
        now: now.toISOString(),
        expireTime: new Date(now.getTime() + keptMs).toISOString(),
      })
    },

    async answer(request, answer) {
      if (answer.length > maxAnswerBytes || !kept.take(request.caller, answer.length)) return
      // It may be the only time that a secret is shown.
      await db.tx((tx) => setAnswer(tx, idOf(request), sealer.seal('request-answer', answer)))
    },
  }
}

/** Counts the bytes that are kept for each caller, anew when the day is over in which the first of them came. */
function createAllowance(clock: () => Date): { take(caller: string, bytes: number): boolean } {
  const days = new Newest<string, { began: number; bytes: number }>(mostCallers)
  return {
    take(caller, bytes) {
      const now = clock().getTime()
      const found = days.get(caller)
      const day = found && now - found.began < keptMs ? found : { began: now, bytes: 0 }
      // Whoever asked last is kept longest.
      days.set(caller, day)
      if (day.bytes + bytes > bytesPerCaller) return false
      day.bytes += bytes
      return true
    },
  }
}

/** The same name of two callers is two names. */
function idOf({ caller, key }: NamedRequest): string {
  return hashOf([caller, key])
}

function hashOf(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${Buffer.byteLength(part as string)}:`).update(part)
  return hash.digest('hex')
}

function reused(): AppError {
  const field = 'Idempotency-Key'
  const description = 'was given to another request of the same caller'
  return new AppError('INVALID_ARGUMENT', `Invalid argument: ${field}: ${description}`, {
    reason: 'REQUEST_ID_REUSED',
    details: [{ type: 'BadRequest', fieldViolations: [{ field, description }] }],
  })
}
