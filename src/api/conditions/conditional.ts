// Calls that are to change something only if it is still as the client knows it, or only once however often they come.
import { setTimeout as sleep } from 'node:timers/promises'
import { fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import type { App } from '#app.ts'
import type { Caller } from '#caller.ts'
import type { Db, Tx } from '#db/sql.ts'
import type { Wishes } from '#edge/arrival.ts'
import { AppError, invalid } from '#lib/errors.ts'
import { holds, type Precondition, preconditionFailed, readPrecondition } from '#lib/preconditions.ts'
import type { Endpoint } from '../methods.ts'
import { entityTagsOf, isRead, type Subjects } from './subjects.ts'

type NamedRequest = Parameters<App['repeats']['find']>[0]

/** One call that the door has admitted. `run` has a method's handler serve a request, with what the app is for it. */
export type Admitted = {
  app: App
  subjects: Subjects
  endpoint: Endpoint
  caller: Caller
  request: Message
  signal: AbortSignal
  run(app: App, endpoint: Endpoint, request: Message): Promise<Message>
}

/** Whether the handler can be run as it is. */
export function isPlain({ ifMatch, ifNoneMatch, idempotencyKey }: Wishes): boolean {
  return ifMatch === undefined && ifNoneMatch === undefined && idempotencyKey === undefined
}

/**
 * Runs a handler as the client wishes. What it wants to be true is looked at in the transaction of the change, and so is the
 * name of the request written. Reads have nothing to wish for.
 */
export async function runAsWished(admitted: Admitted, wishes: Wishes): Promise<Message> {
  const { app, endpoint, caller, request, run } = admitted
  if (isRead(endpoint)) return run(app, endpoint, request)
  const check = checkOf(admitted, readPrecondition(wishes.ifMatch, wishes.ifNoneMatch))
  const named = caller.uid === '' ? undefined : namedBy(admitted, wishes)
  const known = named ? await app.repeats.find(named) : 'new'
  if (named && known !== 'new') return answerAgain(admitted, named)

  const first = async (tx: Tx): Promise<void> => {
    if (named && !(await app.repeats.claim(tx, named))) throw new CarriedOut()
    await check?.(tx)
  }
  const beginning = beginWith(app.db, first, check !== undefined)
  try {
    const answer = await run({ ...app, db: beginning.db }, endpoint, request)
    // It has found nothing to change, which may be because of what somebody else has.
    if (!beginning.hasBegun()) await check?.()
    else if (named) await app.repeats.answer(named, toBinary(endpoint.desc.output, answer))
    return answer
  } catch (error) {
    if (named && error instanceof CarriedOut) return answerAgain(admitted, named)
    throw error
  }
}

/** Somebody has sent the same request at the same time, and was first. */
class CarriedOut extends Error {}

/**
 * A database whose first transaction begins with `first`, each time that it is tried. `looks`: what that looks at must not
 * change before the end, also where the work alone would be content with locks.
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

/** Within a transaction, or without one where nothing was written. */
type Check = (tx?: Tx) => Promise<void>

/** Throws INVALID_ARGUMENT for a precondition about nothing, since one that is passed over would be taken for one that held. */
function checkOf(admitted: Admitted, precondition: Precondition | undefined): Check | undefined {
  if (!precondition) return undefined
  const { app, subjects, endpoint, request, run } = admitted
  const subject = subjects.of(endpoint)
  if (!subject) {
    const onlyMakes = precondition.match === undefined && precondition.noneMatch === '*'
    if (onlyMakes && endpoint.desc.name.startsWith('Create')) return undefined
    const field = precondition.match === undefined ? 'If-None-Match' : 'If-Match'
    throw invalid({ field, description: `${endpoint.method.name} does not change a single resource that has an ETag` })
  }
  return async (tx) => {
    const db = tx ? within(app.db, tx) : app.db
    const answer = await run({ ...app, db }, subject.shows, subject.askFor(request)).catch((error: unknown) => {
      // The write itself says so, unless it makes what is not there.
      if (isNotFound(error) && holds(precondition, [])) return undefined
      throw error
    })
    const resource = answer && subject.take(answer)
    if (holds(precondition, resource ? entityTagsOf(subject.resource, resource) : [])) return
    const what = resource ? 'the resource has changed, or is not what it has to be' : 'there is no such resource'
    throw preconditionFailed(`${what}; read it again`)
  }
}

/** The database as it is for what has to see, and to be a part of, this transaction. */
function within(db: Db, tx: Tx): Db {
  return { ...db, all: (query) => tx.all(query), get: (query) => tx.get(query), tx: (work) => work(tx) }
}

function isNotFound(error: unknown): boolean {
  return error instanceof AppError && error.code === 'NOT_FOUND'
}

const keyPattern = /^[\x21-\x7e]{1,128}$/

function namedBy({ caller, endpoint, request }: Admitted, wishes: Wishes): NamedRequest | undefined {
  if (wishes.idempotencyKey === undefined) return undefined
  // With quotes in the draft of the header, and without them everywhere else.
  const key = wishes.idempotencyKey.trim().replace(/^"(.*)"$/, '$1')
  if (!keyPattern.test(key)) {
    throw invalid({
      field: 'Idempotency-Key',
      description: 'must be 1 to 128 printable ASCII characters without spaces',
    })
  }
  const { ifMatch = '', ifNoneMatch = '' } = wishes
  // An answer may hold what only this token could ask for, so another one of the same caller is not given it.
  const { narrowing = [], narrowed = false } = caller.token ?? {}
  const allowed = [...narrowing].map(([place, mask]) => `${place} ${mask}`).sort()
  const limits = [String(narrowed), caller.session?.organization ?? '', ...allowed].join('\n')
  const content = [endpoint.method.fullName, ifMatch, ifNoneMatch, limits, toBinary(endpoint.desc.input, request)]
  return { caller: caller.uid, key, content }
}

const waitMs = 50
const maxWaits = 40

/** What the request was answered with when it was carried out. Whoever was first may be about to answer. */
async function answerAgain({ app, endpoint, signal }: Admitted, named: NamedRequest): Promise<Message> {
  for (let waits = 0; waits < maxWaits; waits++) {
    const known = await app.repeats.find(named)
    if (typeof known === 'object') return fromBinary(endpoint.desc.output, known.answer)
    await sleep(waitMs, undefined, { signal })
  }
  const message = 'the request has been carried out, and its answer is not known; read what it changes'
  throw new AppError('ABORTED', message, { reason: 'ANSWER_UNKNOWN' })
}
