// Log of requests that the registry refuses. The log collects them in memory, and a background job writes them. Anyone can send
// such requests. So repetitions only increase a number, organizations have separate limits, and texts are sanitized.
import type { Db } from '#db/sql.ts'
import { type BatchWriter, createBatchWriter, inOrder } from '#lib/batches/batch-writer.ts'
import { isDigest } from '#lib/digest.ts'
import { isTagName } from '#lib/oci-names.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import type { Refusal, RefusedAction } from './refusals.model.ts'

export type { RefusedAction } from './refusals.model.ts'

import { addRefusals, keepLatest } from './refusals.store.ts'

export type RefusedRequest = {
  /** Deepest existing group on the path of the request. `repository` is the path of the repository, if the repository exists. */
  group: string
  repository: string | undefined
  /** Requested path. */
  path: string
  reference: string
  action: RefusedAction
  caller: string
  /** True if the caller has any permission in that group or repository. */
  member: boolean
  remoteAddress: string
  now: string
  code: string
  reason: string
}

/** `flush` returns the number of written rows. */
export type RefusalLog = BatchWriter & { note(refused: RefusedRequest): void }

/**
 * Limits on the rows in memory between two writes. `ofOne` applies to one organization, separately for its members and for
 * others. `inAll` applies to all organizations. More rows are dropped.
 */
const maxWaiting = { ofOne: 100, inAll: 5000 }
/** Refusals by the key of their row. */
type RefusalsByKey = Map<string, Refusal>
const perCommit = 200
const maxReason = 200
const maxPath = 255

export function createRefusalLog(db: Db, onError: (error: unknown) => void): RefusalLog {
  let noted = new Map<string, RefusalsByKey>()
  let size = 0

  const add = (one: Refusal): void => {
    const key = keyOf(one)
    const [inside, outside] = [false, true].map((outsider) => noted.get(`${one.organization} ${outsider}`))
    // If a caller became a member in the meantime, the existing row is used.
    const holder = [inside, outside].find((pot) => pot?.has(key))
    if (holder) {
      const known = holder.get(key)!
      const later = one.lastTime >= known.lastTime ? one : known
      holder.set(key, { ...later, count: known.count + one.count })
      return
    }
    const mine: RefusalsByKey = (one.outsider ? outside : inside) ?? new Map()
    if (mine.size >= maxWaiting.ofOne) return
    if (size >= maxWaiting.inAll && !makeRoom(mine.size)) return
    size++
    mine.set(key, one)
    noted.set(`${one.organization} ${one.outsider}`, mine)
  }
  /** Drops a row from the largest set. Otherwise many rows of one organization would take space from other organizations. */
  const makeRoom = (above: number): boolean => {
    let fullest: RefusalsByKey = new Map()
    for (const pot of noted.values()) if (pot.size > fullest.size) fullest = pot
    // If the largest set has at most one row more, dropping a row there would change nothing.
    if (fullest.size <= above + 1) return false
    fullest.delete(fullest.keys().next().value!)
    size--
    return true
  }
  const writer = createBatchWriter<[string, Refusal]>({
    take() {
      const all = inOrder([...noted.values()].flatMap((pot) => [...pot]))
      noted = new Map()
      size = 0
      return all
    },
    putBack(left) {
      for (const [, refusal] of left) add(refusal)
    },
    async write(batch) {
      const refusals = batch.map(([, refusal]) => refusal)
      await writeBatch(db, refusals)
      return refusals.length
    },
    perBatch: perCommit,
    failed: onError,
  })
  return { ...writer, note: (refused) => add(rowOf(refused)) }
}

/** Key of the row, which begins with the organization. */
function keyOf({ organization, group, repository, caller, action, code, lastTime }: Refusal): string {
  return JSON.stringify([organization, group, repository, caller, action, code, lastTime.slice(0, 13)])
}

async function writeBatch(db: Db, batch: readonly Refusal[]): Promise<void> {
  const rings = Map.groupBy(batch, ({ organization, outsider }) => `${organization} ${outsider}`)
  await db.tx(
    async (tx) => {
      await addRefusals(tx, batch)
      for (const [one] of rings.values()) await keepLatest(tx, one!.organization, one!.outsider)
    },
    { durability: 'later' },
  )
}

function rowOf(refused: RefusedRequest): Refusal {
  const { group, repository, path, reference, action, caller, member, remoteAddress, now, code, reason } = refused
  const organization = rootOf(group)
  // The uid of a person contains no organization, so the bindings of a person determine if the person is a member.
  const outsider = !member && (caller === '' || !isAtOrBelow(caller, organization))
  return {
    uid: '',
    organization,
    group,
    outsider,
    // For an outsider, paths that do not exist are left out. Otherwise an outsider could create any number of rows.
    repository: repository ?? (outsider ? '' : replaceControlCharacters(path, maxPath)),
    caller,
    action,
    code,
    // Text that is neither a tag nor a digest is left out, because it could be a password.
    reference: isTagName(reference) || isDigest(reference) ? reference : '',
    reason: replaceControlCharacters(reason, maxReason),
    remoteAddress: replaceControlCharacters(remoteAddress, 64),
    count: 1,
    lastTime: now,
  }
}

/** Replaces characters that a terminal or a web page could interpret. */
function replaceControlCharacters(text: string, most: number): string {
  return text
    .slice(0, most)
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD')
}
