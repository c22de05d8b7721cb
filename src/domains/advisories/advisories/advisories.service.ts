import { hash, randomInt } from 'node:crypto'
import type { Call } from '#app.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { listNodes } from '#domains/iam/groups/list-nodes.ts'
import { type FieldViolation, found, invalid, refuseIfAny } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Branch, Listed } from '#lib/lists/paging.ts'
import { isUid, newUid } from '#lib/uid.ts'
import { distinct, type Severity, severitiesOf } from '../metadata/vulnerabilities.service.ts'
import { type Advisory, type AdvisoryEvent, advisoryType, inOrder, reviewStates } from './advisories.model.ts'
import * as store from './advisories.store.ts'
import { advisoryProblems } from './advisory-checks.ts'
import { changeCount } from './advisory-index.store.ts'
import { countAdvisories, listAdvisories as find } from './advisory-search.store.ts'
import type { AdvisoryFilter } from './advisory-terms.model.ts'

/** An imported advisory. If its public ID is empty, the server sets one. */
export type ImportedAdvisory = Omit<Advisory, 'uid' | 'createTime' | 'updateTime'>
export type ImportCounts = { created: number; updated: number; unchanged: number }

const maxImported = 500
const maxQuery = 256

/** An advisory with the severities of its aliases from the metadata. */
export type ShownAdvisory = { advisory: Advisory; severities: Severity[] }

export async function getAdvisory(call: Call, uid: string): Promise<ShownAdvisory> {
  const { advisory } = found(await store.findAdvisory(call.app.db, uid), advisoryType, uid)
  const [shown] = await withSeverities(call, [advisory])
  return shown!
}

export async function listAdvisories(call: Call, query: ListQuery<AdvisoryFilter>): Promise<Listed<ShownAdvisory>> {
  checkQuery(query.filter)
  const listed = await listNodes(call, query, {
    list: find,
    count: (_, branches, filter) => totalOf(call, branches, filter),
  })
  return { ...listed, items: await withSeverities(call, listed.items) }
}

/**
 * Total number of search results. For a large part of all advisories, counting row by row is slow. So the total is cached until
 * an advisory changes.
 */
async function totalOf(call: Call, branches: readonly Branch[], filter: AdvisoryFilter): Promise<number> {
  const { db, searchTotals } = call.app
  const version = await changeCount(db)
  return searchTotals.of(JSON.stringify([branches, filter]), version, () => countAdvisories(db, branches, filter))
}

async function withSeverities(call: Call, advisories: readonly Advisory[]): Promise<ShownAdvisory[]> {
  const aliases = advisories.flatMap(({ aliases }) => aliases)
  const known = await severitiesOf(call.app.db, aliases)
  return advisories.map((advisory) => ({
    advisory,
    severities: distinct(advisory.aliases.flatMap((alias) => known.get(alias) ?? [])),
  }))
}

/** Imports all advisories or none, in one transaction. An advisory that did not change since its last import is not written. */
export async function importAdvisories(
  call: Call,
  parent: string,
  imported: readonly ImportedAdvisory[],
): Promise<ImportCounts> {
  if (!isUid(parent)) throw invalid({ field: 'parent', description: 'is not a uid' })
  checkImport(imported)
  const given = imported.map((one) => ({ ...one, advisoryId: one.advisoryId || newAdvisoryId() }))
  const counts = await call.app.db.tx(async (tx) => {
    await requireGroup(tx, parent)
    const advisoryIds = given.map(({ advisoryId }) => advisoryId)
    const known = await store.findImported(tx, parent, advisoryIds)
    const saved = given.flatMap((one) => {
      const before = known.get(one.advisoryId)
      const sourceHash = hash('sha256', JSON.stringify(one), 'base64url')
      if (before?.sourceHash === sourceHash) return []
      return [{ before, after: merge(call, parent, one, before?.advisory), sourceHash }]
    })
    await store.saveAdvisories(tx, saved)
    const uids = saved.map(({ after }) => after.uid)
    for (const changed of call.app.hooks.advisoriesChanged) await changed(tx, uids, call.now)
    const updated = saved.filter(({ before }) => before).length
    return { created: saved.length - updated, updated, unchanged: given.length - saved.length }
  })
  call.log.info('advisories imported', counts)
  return counts
}

/**
 * Merges an imported advisory with the stored one. Events with the same content keep their uid and review. Events that were added
 * through the API stay.
 */
function merge(call: Call, parent: string, given: ImportedAdvisory, before: Advisory | undefined): Advisory {
  const uid = before?.uid ?? newUid(parent)
  const old = Map.groupBy(before?.events ?? [], contentOf)
  const events = inOrder([
    // If two events have the same content, each keeps a separate uid.
    ...given.events.map((event) => withHistory(event, old.get(contentOf(event))?.shift(), uid)),
    ...(before?.events.filter((event) => !event.imported) ?? []),
  ])
  const times = events.map(({ createTime }) => createTime)
  return { ...given, uid, events, createTime: times[0] ?? call.now, updateTime: times.at(-1) ?? call.now }
}

function withHistory(event: AdvisoryEvent, before: AdvisoryEvent | undefined, advisory: string): AdvisoryEvent {
  if (!before) return { ...event, uid: newUid(advisory) }
  const reviewed = before.reviewState !== reviewStates.pending
  const { uid, reviewState, reviewer } = before
  return reviewed ? { ...event, uid, reviewState, reviewer } : { ...event, uid }
}

function contentOf({ createTime, type, data, imported }: AdvisoryEvent): string {
  return JSON.stringify([createTime, type, data, imported])
}

const alphabet = '23456789cfghjmpqrvwx'

/** Random public ID with the prefix of this server, which no other source uses. */
export function newAdvisoryId(): string {
  const group = () => Array.from({ length: 4 }, () => alphabet[randomInt(alphabet.length)]).join('')
  return `PFA-${group()}-${group()}-${group()}`
}

function checkImport(imported: readonly ImportedAdvisory[]): void {
  if (imported.length === 0) throw invalid({ field: 'advisories', description: 'is required' })
  if (imported.length > maxImported) {
    throw invalid({ field: 'advisories', description: `must have at most ${maxImported} advisories` })
  }
  const seen = new Set<string>()
  refuseIfAny(
    imported.flatMap((one, i): FieldViolation[] => {
      const at = `advisories[${i}].advisory`
      const problems = advisoryProblems(one)
      if (one.events.length === 0) problems.push({ field: 'events', description: 'is required' })
      if (one.advisoryId !== '' && seen.has(one.advisoryId)) {
        problems.push({ field: 'advisory_id', description: 'is given twice' })
      }
      seen.add(one.advisoryId)
      return problems.map(({ field, description }) => ({
        field: field === 'origin' ? `advisories[${i}].origin` : `${at}.${field}`,
        description,
      }))
    }),
  )
}

function checkQuery({ query }: AdvisoryFilter): void {
  if (query.length > maxQuery)
    throw invalid({ field: 'query', description: `must be at most ${maxQuery} characters long` })
}
