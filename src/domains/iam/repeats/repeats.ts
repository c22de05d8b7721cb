// Idempotency keys. If a client gets no response, it sends the request again with the same key. The key is stored in the
// transaction of the change, so a repeated request changes nothing.
import { createHash } from 'node:crypto'
import type { Db, Tx } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import type { SecretCipher } from '#lib/crypto/secret-cipher.ts'
import { AppError } from '#lib/errors.ts'
import { findRequest, insertRequest, setAnswer } from './repeats.store.ts'

/**
 * Request with an idempotency key. Different callers can use the same `key`. `content` is everything that distinguishes this
 * request from another one.
 */
export type NamedRequest = { caller: string; key: string; content: readonly (string | Uint8Array)[] }

/** State of a request: never processed, processed, or processed with a stored response. */
export type Known = 'new' | 'carried out' | { answer: Uint8Array }

export type Repeats = {
  /** Looks up a request by its key. Throws INVALID_ARGUMENT if the caller has used the key for a different request. */
  find(request: NamedRequest): Promise<Known>
  /**
   * Stores the key. Must be called in the transaction of the change, before the change. Returns false if the request was
   * processed meanwhile.
   */
  claim(tx: Tx, request: NamedRequest): Promise<boolean>
  /**
   * Stores the response of a request. Does nothing if the response is too long, or if the caller has used up the daily storage.
   */
  answer(request: NamedRequest, answer: Uint8Array): Promise<void>
}

const keptMs = 24 * 60 * 60_000
const maxAnswerBytes = 256 * 1024
/** Most bytes of responses that one server stores for one caller in a day. */
const bytesPerCaller = 16 * 1024 * 1024
const mostCallers = 10_000

export function createRepeats(db: Db, cipher: SecretCipher, clock: () => Date): Repeats {
  const kept = createAllowance(clock)
  return {
    async find(request) {
      const row = await findRequest(db, idOf(request), clock().toISOString())
      if (!row) return 'new'
      if (row.requestHash !== hashOf(request.content)) throw keyReused()
      const answer = row.answer === null ? undefined : cipher.decrypt('request-answer', row.answer)
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
      // The response is encrypted, since it may contain a secret that is shown only once.
      await db.tx((tx) => setAnswer(tx, idOf(request), cipher.encrypt('request-answer', answer)))
    },
  }
}

/** Counts the stored bytes of each caller. A caller's count restarts a day after the first stored response. */
function createAllowance(clock: () => Date): { take(caller: string, bytes: number): boolean } {
  const days = new Newest<string, { began: number; bytes: number }>(mostCallers)
  return {
    take(caller, bytes) {
      const now = clock().getTime()
      const found = days.get(caller)
      const day = found && now - found.began < keptMs ? found : { began: now, bytes: 0 }
      // Callers without recent requests are dropped from memory first.
      days.set(caller, day)
      if (day.bytes + bytes > bytesPerCaller) return false
      day.bytes += bytes
      return true
    },
  }
}

/** Hash of caller and key, since different callers can use the same key. */
function idOf({ caller, key }: NamedRequest): string {
  return hashOf([caller, key])
}

function hashOf(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${Buffer.byteLength(part as string)}:`).update(part)
  return hash.digest('hex')
}

function keyReused(): AppError {
  const field = 'Idempotency-Key'
  const description = 'was used for a different request of the same caller; use a new key for each request'
  return new AppError('INVALID_ARGUMENT', `Invalid argument: ${field}: ${description}`, {
    reason: 'REQUEST_ID_REUSED',
    details: [{ type: 'BadRequest', fieldViolations: [{ field, description }] }],
  })
}
