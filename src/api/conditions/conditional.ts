// Conditional and idempotent calls. A conditional call changes a resource only if its state is the expected one. An idempotent
// call changes it only once, even if it is retried.
import { setTimeout as sleep } from 'node:timers/promises'
import { fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import type { App } from '#app.ts'
import type { Caller } from '#caller.ts'
import type { Db, Tx } from '#db/sql.ts'
import type { CallConditions } from '#edge/arrival.ts'
import { AppError, invalid } from '#lib/errors.ts'
import { holds, type Precondition, preconditionFailed, readPrecondition } from '#lib/preconditions.ts'
import type { Endpoint } from '../methods.ts'
import { entityTagsOf, isRead, type Subjects } from './subjects.ts'

type NamedRequest = Parameters<App['repeats']['find']>[0]

/** Call whose permission was checked. `run` runs a handler with the given app. */
export type Admitted = {
  app: App
  subjects: Subjects
  endpoint: Endpoint
  caller: Caller
  request: Message
  signal: AbortSignal
  run(app: App, endpoint: Endpoint, request: Message): Promise<Message>
}

/** True if the request has no preconditions and no idempotency key. */
export function isPlain({ ifMatch, ifNoneMatch, idempotencyKey }: CallConditions): boolean {
  return ifMatch === undefined && ifNoneMatch === undefined && idempotencyKey === undefined
}

/**
 * Runs a handler with the preconditions and the idempotency key of the client. Checks both in the transaction of the change. For
 * reads, ignores both.
 */
export async function runWithConditions(admitted: Admitted, wishes: CallConditions): Promise<Message> {
  const { app, endpoint, caller, request, run } = admitted
  if (isRead(endpoint)) return run(app, endpoint, request)
  const check = checkOf(admitted, readPrecondition(wishes.ifMatch, wishes.ifNoneMatch))
  const named = caller.uid === '' ? undefined : namedBy(admitted, wishes)
  const known = named ? await app.repeats.find(named) : 'new'
  if (named && known !== 'new') return answerAgain(admitted, named)

  const first = async (tx: Tx): Promise<void> => {
    if (named && !(await app.repeats.claim(tx, named))) throw new AlreadyExecuted()
    await check?.(tx)
  }
  const beginning = beginWith(app.db, first, check !== undefined)
  try {
    const answer = await run({ ...app, db: beginning.db }, endpoint, request)
    // If the handler has changed nothing, it has run no transaction. The precondition is then checked here.
    if (!beginning.hasBegun()) await check?.()
    else if (named) await app.repeats.answer(named, toBinary(endpoint.desc.output, answer))
    return answer
  } catch (error) {
    if (named && error instanceof AlreadyExecuted) return answerAgain(admitted, named)
    throw error
  }
}

/** Error if another call with the same idempotency key has made the change meanwhile. */
class AlreadyExecuted extends Error {}

/**
 * Returns a database whose first transaction, and each retry of it, starts with `first`. If `looks` is true, this transaction is
 * serializable. Then the rows that `first` reads cannot change before the commit.
 */
function beginWith(db: Db, first: (tx: Tx) => Promise<void>, looks: boolean): { db: Db; hasBegun(): boolean } {
  let begun = false
  const beginning: Db = {
    ...db,
    async tx(work, options = {}) {
      if (begun) return db.tx(work, options)
      const { isolation: _, ...serializable } = options
      const value = await db.tx(
        async (tx) => {
          await first(tx)
          return work(tx)
        },
        looks ? serializable : options,
      )
      begun = true
      return value
    },
  }
  return { db: beginning, hasBegun: () => begun }
}

/** Checks the precondition, in the transaction of the write if there is one. */
type Check = (tx?: Tx) => Promise<void>

/**
 * Creates the check of a precondition. Throws INVALID_ARGUMENT for a method without a resource. If the precondition were ignored
 * there, clients would believe that it was checked.
 */
function checkOf(admitted: Admitted, precondition: Precondition | undefined): Check | undefined {
  if (!precondition) return undefined
  const { app, subjects, endpoint, request, run } = admitted
  const subject = subjects.of(endpoint)
  if (!subject) {
    const onlyMakes = precondition.match === undefined && precondition.noneMatch === '*'
    if (onlyMakes && endpoint.desc.name.startsWith('Create')) return undefined
    const field = precondition.match === undefined ? 'If-None-Match' : 'If-Match'
    throw invalid({
      field,
      description: `is not supported by ${endpoint.method.name}, which does not change a single resource with an ETag`,
    })
  }
  return async (tx) => {
    const db = tx ? withTransaction(app.db, tx) : app.db
    const answer = await run({ ...app, db }, subject.shows, subject.askFor(request)).catch((error: unknown) => {
      // If the resource is missing and the precondition allows that, the write itself reports the error, or creates the resource.
      if (isNotFound(error) && holds(precondition, [])) return undefined
      throw error
    })
    const resource = answer && subject.take(answer)
    if (holds(precondition, resource ? entityTagsOf(subject.resource, resource) : [])) return
    throw preconditionFailed(
      resource
        ? 'the resource differs from what If-Match or If-None-Match requires; read it again and retry with its present ETag'
        : 'the resource that If-Match requires does not exist; it may have been deleted',
    )
  }
}

/** Returns a database that runs all reads and writes in the transaction `tx`. */
function withTransaction(db: Db, tx: Tx): Db {
  return { ...db, all: (query) => tx.all(query), get: (query) => tx.get(query), tx: (work) => work(tx) }
}

function isNotFound(error: unknown): boolean {
  return error instanceof AppError && error.code === 'NOT_FOUND'
}

const keyPattern = /^[\x21-\x7e]{1,128}$/

function namedBy({ caller, endpoint, request }: Admitted, wishes: CallConditions): NamedRequest | undefined {
  if (wishes.idempotencyKey === undefined) return undefined
  // Removes quotes. The draft standard of this header requires them, but most clients send none.
  const key = wishes.idempotencyKey.trim().replace(/^"(.*)"$/, '$1')
  if (!keyPattern.test(key)) {
    throw invalid({
      field: 'Idempotency-Key',
      description: 'must be 1 to 128 printable ASCII characters without spaces',
    })
  }
  const { ifMatch = '', ifNoneMatch = '' } = wishes
  // Includes the limits of the token, since the response may contain data that another token of the same caller cannot see.
  const { narrowing = [], narrowed = false } = caller.token ?? {}
  const allowed = [...narrowing].map(([group, mask]) => `${group} ${mask}`).sort()
  const limits = [String(narrowed), caller.session?.organization ?? '', ...allowed].join('\n')
  const content = [endpoint.method.fullName, ifMatch, ifNoneMatch, limits, toBinary(endpoint.desc.input, request)]
  return { caller: caller.uid, key, content }
}

const waitMs = 50
const maxWaits = 40

/**
 * Response of an earlier call with the same idempotency key. Waits for the response, since the earlier call may still be running.
 * Throws ABORTED if it takes too long.
 */
async function answerAgain({ app, endpoint, signal }: Admitted, named: NamedRequest): Promise<Message> {
  for (let waits = 0; waits < maxWaits; waits++) {
    const known = await app.repeats.find(named)
    if (typeof known === 'object') return fromBinary(endpoint.desc.output, known.answer)
    await sleep(waitMs, undefined, { signal })
  }
  const message =
    'an earlier request with this Idempotency-Key is still running, or its answer was lost; read the resource to see the result'
  throw new AppError('ABORTED', message, { reason: 'ANSWER_UNKNOWN' })
}
