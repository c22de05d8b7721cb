// What the registry refuses, noted in memory and written by a duty. Whoever sends it may be anybody: so the same again only
// adds to a number, no organisation takes the room of another, and no text is kept as it came.
import type { Db } from '#db/sql.ts'
import { type BatchWriter, createBatchWriter, inOrder } from '#lib/batches/batch-writer.ts'
import { isDigest } from '#lib/digest.ts'
import { isTagName } from '#lib/oci-names.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import type { Refusal, RefusedAction } from './refusals.model.ts'

export type { RefusedAction } from './refusals.model.ts'

import { addRefusals, keepLatest } from './refusals.store.ts'

export type RefusedRequest = {
  /** The deepest group on the path that exists, and the path of the repo if there is one. */
  group: string
  repository: string | undefined
  /** The path that was asked for. */
  path: string
  reference: string
  action: RefusedAction
  caller: string
  /** Whether the caller may do anything there. */
  member: boolean
  remoteAddress: string
  now: string
  code: string
  reason: string
}

/** `flush` answers with how many rows it wrote. */
export type RefusalLog = BatchWriter & { note(refused: RefusedRequest): void }

/** Between two writes, of one organisation by its own people or by others, and in all. What is more is not kept. */
const maxWaiting = { ofOne: 100, inAll: 5000 }
/** By the key of their row. */
type Pot = Map<string, Refusal>
const perCommit = 200
const maxReason = 200
const maxPath = 255

export function createRefusalLog(db: Db, onError: (error: unknown) => void): RefusalLog {
  let noted = new Map<string, Pot>()
  let size = 0

  const add = (one: Refusal): void => {
    const key = keyOf(one)
    const [inside, outside] = [false, true].map((outsider) => noted.get(`${one.organisation} ${outsider}`))
    // Whoever has become a member since has one row all the same.
    const holder = [inside, outside].find((pot) => pot?.has(key))
    if (holder) {
      const known = holder.get(key)!
      const later = one.lastTime >= known.lastTime ? one : known
      holder.set(key, { ...later, count: known.count + one.count })
      return
    }
    const mine: Pot = (one.outsider ? outside : inside) ?? new Map()
    if (mine.size >= maxWaiting.ofOne) return
    if (size >= maxWaiting.inAll && !makeRoom(mine.size)) return
    size++
    mine.set(key, one)
    noted.set(`${one.organisation} ${one.outsider}`, mine)
  }
  /** At the cost of the fullest pot, so that many of some organisations take no room of others. */
  const makeRoom = (above: number): boolean => {
    let fullest: Pot = new Map()
    for (const pot of noted.values()) if (pot.size > fullest.size) fullest = pot
    // A pot that gains one by taking one from a pot of the same size would only swap them.
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

/** Of the same row of the table, beginning with the organisation. */
function keyOf({ organisation, place, repository, caller, action, code, lastTime }: Refusal): string {
  return JSON.stringify([organisation, place, repository, caller, action, code, lastTime.slice(0, 13)])
}

async function writeBatch(db: Db, batch: readonly Refusal[]): Promise<void> {
  const rings = Map.groupBy(batch, ({ organisation, outsider }) => `${organisation} ${outsider}`)
  await db.tx(
    async (tx) => {
      await addRefusals(tx, batch)
      for (const [one] of rings.values()) await keepLatest(tx, one!.organisation, one!.outsider)
    },
    { durability: 'later' },
  )
}

function rowOf(refused: RefusedRequest): Refusal {
  const { group, repository, path, reference, action, caller, member, remoteAddress, now, code, reason } = refused
  const organisation = rootOf(group)
  // People live nowhere, and belong to where they are bound.
  const outsider = !member && (caller === '' || !isAtOrBelow(caller, organisation))
  return {
    uid: '',
    organisation,
    place: group,
    outsider,
    // An outsider may ask for any number of paths, and each would be a row.
    repository: repository ?? (outsider ? '' : cleaned(path, maxPath)),
    caller,
    action,
    code,
    // Whatever else is in its place may be anything, a password too.
    reference: isTagName(reference) || isDigest(reference) ? reference : '',
    reason: cleaned(reason, maxReason),
    remoteAddress: cleaned(remoteAddress, 64),
    count: 1,
    lastTime: now,
  }
}

/** Without what a terminal or a page could take for more than text. */
function cleaned(text: string, most: number): string {
  return text
    .slice(0, most)
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD')
}
