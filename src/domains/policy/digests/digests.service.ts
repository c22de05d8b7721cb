import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { actorNames } from '#domains/iam/identities/actors.service.ts'
import { storedManifests } from '#domains/registry/manifests/manifests.store.ts'
import { repoType } from '#domains/registry/repos/repos.model.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { digestAbout } from '#domains/registry/tags/tags.model.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import { keptDays, maxCallers } from '#domains/registry/usage/digest-usage.model.ts'
import { digestPattern, isDigest } from '#lib/digest.ts'
import { type FieldViolation, found, invalid, refuseIfAny } from '#lib/errors.ts'
import { type Listed, listedUpTo, type Page, toListed } from '#lib/lists/paging.ts'
import { isUid } from '#lib/uid.ts'
import { protectionOf, RetentionSearch, undecided } from '../retention/protection.service.ts'
import type { Kept } from '../retention/retention.model.ts'
import { factsOf } from '../retention/retention-locks.store.ts'
import {
  defaultDays,
  lookedAt,
  mostCounted,
  mostDays,
  mostExcepted,
  mostTags,
  type Puller,
  type ReferrerRow,
} from './digests.model.ts'
import * as store from './digests.store.ts'

const listIdentities = [capabilityNumber('identity.list')]
/** Most days that are read for one manifest. Days without usage do not count. */
const days = 7
/** Most rows of one day: one for each caller with its own row, one for anonymous callers, and one for all other callers. */
const perDay = maxCallers + 2
const mostPullers = 100

/** Lists the referrers of a digest, whether or not they have a tag. */
export async function listReferrers(
  call: Call,
  repoUid: string,
  subject: string,
  page: Page,
): Promise<Listed<ReferrerRow>> {
  const { db } = call.app
  const repo = await repoOf(call, repoUid, subject)
  const rows = await store.referrersOf(db, repo, subject, page)
  return toListed(
    call,
    page,
    rows.map((row) => ({ ...row, uid: row.digest })),
    await store.countReferrers(db, repo, subject),
  )
}

export type Pulls = { lastTime: string; pullers: (Puller & { callerName: string })[] }

/**
 * Time and callers of the last pulls of a manifest. Callers are listed only with permission to list identities. The time is empty
 * if it is unknown.
 */
export async function pullsOf(call: Call, repoUid: string, digest: string): Promise<Pulls> {
  const { db } = call.app
  const rows = await store.newestUsage(db, await repoOf(call, repoUid, digest), digest, days * perDay)
  const lastTime = rows.reduce((last, row) => (row.lastTime > last ? row.lastTime : last), '')
  if (!call.caller.rights.holds(repoUid, listIdentities)) return { lastTime, pullers: [] }
  const pullers = pullersOf(rows).slice(0, mostPullers)
  const names = await actorNames(
    db,
    pullers.map(({ caller }) => caller),
  )
  return { lastTime, pullers: pullers.map((one) => ({ ...one, callerName: names.get(one.caller) ?? '' })) }
}

/** Callers in the usage rows of the newest days. The caller with the latest pull comes first. */
function pullersOf(rows: readonly store.UsageRow[]): Puller[] {
  const newest = new Set([...new Set(rows.map(({ day }) => day))].slice(0, days))
  const byCaller = Map.groupBy(
    rows.filter(({ day }) => newest.has(day)),
    ({ caller }) => caller,
  )
  const pullers = [...byCaller].map(([caller, some]): Puller => {
    const sum = (name: 'gets' | 'checks') => some.reduce((count, row) => count + row[name], 0)
    const [lastTime = ''] = some.map((row) => row.lastTime).sort((a, b) => (a < b ? 1 : -1))
    return { caller, lastTime, gets: sum('gets'), checks: sum('checks') }
  })
  return pullers.sort((a, b) =>
    a.lastTime === b.lastTime ? (a.caller < b.caller ? -1 : 1) : a.lastTime < b.lastTime ? 1 : -1,
  )
}

async function repoOf(call: Call, uid: string, digest: string): Promise<number> {
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: `must match "${digestPattern.source}"` })
  const { id } = found(await findRepoRow(call.app.db, { uid }), repoType, uid)
  return id
}

const dayMs = 86_400_000

export type Unpulled = store.UnpulledRow & {
  tags: readonly string[]
  lastPull: { time: string; caller: string; callerName: string } | undefined
  lastCheck: string | undefined
  /** Digest of the index or subject to which the manifest belongs. Empty if there is none in the repository. */
  partOf: string
  kept: Kept | undefined
}

/** Throws INVALID_ARGUMENT for an invalid number of days or invalid identities. */
export function readUnpulledQuery({ days, except }: { days: number; except: readonly string[] }): {
  days: number
  except: readonly string[]
} {
  const problems: FieldViolation[] = []
  if (days < 0 || days > mostDays) problems.push({ field: 'days', description: `must be from 1 to ${mostDays}` })
  if (except.length > mostExcepted)
    problems.push({ field: 'except', description: `must have at most ${mostExcepted} entries` })
  else if (!except.every((uid) => isUid(uid)))
    problems.push({ field: 'except', description: 'must be uids of identities' })
  refuseIfAny(problems)
  return { days: days === 0 ? defaultDays : Math.min(days, keptDays), except }
}

/**
 * Lists a page of the manifests that nobody has pulled for a number of days. Pulls by the identities in `except` do not count.
 */
export async function listUnpulled(
  call: Call,
  repoUid: string,
  page: Page,
  { days, except }: ReturnType<typeof readUnpulledQuery>,
): Promise<Listed<Unpulled, number | undefined>> {
  const { db } = call.app
  const repo = found(await findRepoRow(db, { uid: repoUid }), repoType, repoUid)
  const since = new Date(Date.parse(call.now) - days * dayMs).toISOString()
  const range = { after: page.after?.value, desc: page.order.desc }
  const upTo = await store.endOfWindow(db, repo.id, range, lookedAt)
  const asked = { ...range, upTo, since, except }
  const rows = await store.unpulledIn(db, repo.id, asked, { skip: page.skip, most: page.size + 1 })
  const some = rows.slice(0, page.size)
  const look = await RetentionSearch.at(db, call, repo, call.now)
  const mayName = call.caller.rights.holds(repoUid, listIdentities)
  const items: Unpulled[] = []
  for (const row of some) {
    call.signal.throwIfAborted()
    const tags = await namesWith(db, repo, row.digest, mostTags)
    const last = await store.lastPull(db, repo.id, row.digest, except)
    items.push({
      ...row,
      tags,
      lastPull: last && { ...last, caller: mayName ? last.caller : '', callerName: '' },
      lastCheck: await store.lastCheck(db, repo.id, row.digest),
      partOf: await partOf(look, row, tags),
      kept: look.isOver ? undecided(row.digest) : await protectionOf(look, row.digest),
    })
  }
  if (mayName) await name(call, items)
  const total = page.after ? totalIn(page.after) : await countAll(db, repo.id, { ...asked, upTo: undefined })
  const end = rows.length > page.size ? some.at(-1)!.digest : upTo
  const last = end === undefined ? undefined : { value: end, uid: `${end} ${total ?? ''}` }
  // Items to skip can only remain for the next page if this page skipped all of its items.
  const passed = page.skip > 0 && rows.length === 0 ? await store.countUnpulled(db, repo.id, asked) : page.skip
  return listedUpTo(call, page, { items, total, last, toSkip: page.skip - passed })
}

/** Total of the list. It is counted for the first page and stored in page tokens, since counting for each page would be slow. */
function totalIn({ uid }: NonNullable<Page['after']>): number | undefined {
  const [, total = ''] = uid.split(' ')
  return total === '' ? undefined : Number(total)
}

/** Total of the list. Returns undefined if the repository has too many manifests to count. */
async function countAll(db: Reader, repo: number, asked: store.UnpulledQuery): Promise<number | undefined> {
  const isLarge = (await store.endOfWindow(db, repo, asked, mostCounted + 1)) !== undefined
  return isLarge ? undefined : store.countUnpulled(db, repo, asked)
}

/** Digest of the subject or index to which the manifest belongs. Empty if there is none in the repository. */
async function partOf(look: RetentionSearch, { digest }: store.UnpulledRow, tags: readonly string[]): Promise<string> {
  const isHere = async (one: string) => (await factsOf(look.reader, look.repo.id, one)) !== undefined
  const { subjects, indexes } = await look.above(digest)
  const [about = indexes[0]] = (await storedManifests(look.reader, look.repo.id, subjects)).keys()
  if (about !== undefined) return about
  for (const tag of tags) {
    const named = digestAbout(tag)?.digest
    if (named !== undefined && (await isHere(named))) return named
  }
  return ''
}

async function name(call: Call, items: readonly Unpulled[]): Promise<void> {
  const callers = items.flatMap(({ lastPull }) => (lastPull ? [lastPull.caller] : []))
  const names = await actorNames(call.app.db, [...new Set(callers)])
  for (const { lastPull } of items) if (lastPull) lastPull.callerName = names.get(lastPull.caller) ?? ''
}
