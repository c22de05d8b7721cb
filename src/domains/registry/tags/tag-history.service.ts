import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { actorNames } from '#domains/iam/identities/actors.service.ts'
import { digestPattern } from '#lib/digest.ts'
import { type FieldViolation, found, invalid, refuseIfAny } from '#lib/errors.ts'
import { type Page, toListed } from '#lib/lists/paging.ts'
import { parentOf } from '#lib/uid.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import { findDeletedRepo } from '../repos/ledgers.store.ts'
import { deletedRepoType } from '../repos/removals.model.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { mostCounted } from './tag-history.model.ts'
import * as store from './tag-history.store.ts'
import type { TagRepo } from './tags.model.ts'
import { findTag, findTagNamed } from './tags.store.ts'
import * as told from './upstream-history.store.ts'

export type NamedRecord = store.EndedRecord & { actorName: string }
const listIdentities = [capabilityNumber('identity.list')]

export type RecordFilter = { tag: string; digest: string; from: string | undefined; before: string | undefined }

/** Current digest of a tag. Returns undefined if the tag does not exist or has no digest. */
export async function pointsTo(reader: Reader, repo: { id: number }, tag: string): Promise<string | undefined> {
  return (await findTagNamed(reader, repo.id, tag))?.digest || undefined
}

/** True if the tag exists or ever existed. */
export async function isInHistory(reader: Reader, repo: TagRepo, tag: string): Promise<boolean> {
  return (await store.lastTime(reader, repo.ledger, tag)) !== ''
}

/**
 * Assignments of a tag in a time window, oldest first. The text has the members of a JSON list, and is empty if there are no
 * assignments.
 */
export async function historyText(
  reader: Reader,
  repo: TagRepo,
  tag: string,
  window: store.Window,
  limit: number,
): Promise<string> {
  return store.historyText(reader, repo.ledger, tag, window, limit)
}

/** Assignments and deletions of a tag in a time window, newest first. */
export async function listHistory(
  reader: Reader,
  repo: TagRepo,
  tag: string,
  window: store.Window,
  limit: number,
): Promise<store.DescribedRecord[]> {
  return store.listHistory(reader, repo.ledger, tag, window, limit)
}

/**
 * Assignments of a tag in a time window, oldest first. Includes assignments from before the tag was deleted and created again.
 * Empty if there is no such tag.
 */
export async function listMoves(
  call: Call,
  tagUid: string,
  window: store.Window,
  most: number,
): Promise<store.TagMove[]> {
  const { db } = call.app
  const tag = await findTag(db, tagUid)
  const repo = tag && (await findRepoRow(db, { uid: parentOf(tagUid) }))
  return repo ? store.movesIn(db, repo.ledger, tag.name, window, most) : []
}

/**
 * A page of rows of the tag history: of a tag, of a digest, or of the whole repository. The rows of a digest show which tags
 * pointed to it, each with start and end.
 */
export async function listRecords(call: Call, repoUid: string, page: Page, filter: RecordFilter) {
  checkRequest(page, filter)
  const { ledger } = found(await findRepoRow(call.app.db, { uid: repoUid }), repoType, repoUid)
  return pageOfRecords(call, repoUid, ledger, page, filter)
}

/** A page of the rows of a deleted repository. Includes rows of a new repository with the same path. */
export async function listRecordsOfDeleted(call: Call, repoUid: string, page: Page, filter: RecordFilter) {
  checkRequest(page, filter)
  const { ledger } = found(await findDeletedRepo(call.app.db, repoUid), deletedRepoType, repoUid)
  return pageOfRecords(call, repoUid, ledger, page, filter)
}

/** Throws INVALID_ARGUMENT for a malformed digest, and for a sort order without an index for this filter. */
export function checkRequest({ order }: Page, { tag, digest, from, before }: RecordFilter): void {
  const malformed: FieldViolation = { field: 'digest', description: `digest must match "${digestPattern.source}"` }
  refuseIfAny(digest === '' || digestPattern.test(digest) ? [] : [malformed])
  // No index has both tag and time. A list by tag would read all records to find the few records in a time window.
  if (order.field === 'tag' && tag === '' && digest === '' && (from ?? before) !== undefined) {
    const description = 'cannot be tag together with start_time or end_time, unless tag or digest is set'
    throw invalid({ field: 'order_by', description })
  }
}

async function pageOfRecords(
  call: Call,
  repoUid: string,
  ledger: number,
  page: Page,
  { tag, digest, from, before }: RecordFilter,
) {
  const window = { from, before, digest: digest || undefined }
  const { db } = call.app
  const rows = await store.listRecords(db, ledger, tag || undefined, window, page)
  // Callers who are only allowed to pull see uids, not names.
  const named = call.caller.rights.holds(repoUid, listIdentities) ? rows : []
  const actors = named.map(({ actor }) => actor)
  const names = await actorNames(db, actors)
  // The cursor of a record has its tag and its time.
  const tieOf = (row: store.EndedRecord) => (page.order.field === 'time' ? row.tag : row.time)
  return toListed(
    call,
    page,
    rows.map((row) => ({ ...row, uid: tieOf(row), actorName: names.get(row.actor) ?? '' })),
    await store.countRecords(db, ledger, tag || undefined, window, mostCounted),
  )
}

export type ReportedRecord = told.ReportedRecord
const readUpstreams = [capabilityNumber('registry.settings.update')]

/**
 * Lists a page of the tag history that upstream registries served. Rules and views do not use this history. `origin` is empty for
 * callers who are not allowed to see upstreams.
 */
export async function listReported(call: Call, repoUid: string, page: Page, filter: RecordFilter) {
  checkRequest(page, filter)
  const { db } = call.app
  const { ledger } = found(await findRepoRow(db, { uid: repoUid }), repoType, repoUid)
  const { tag, digest, from, before } = filter
  const window = { from, before, digest: digest || undefined }
  const rows = await told.listReported(db, ledger, tag || undefined, window, page)
  const maySee = call.caller.rights.holds(repoUid, readUpstreams)
  const tieOf = (row: ReportedRecord) => (page.order.field === 'time' ? row.tag : row.time)
  return toListed(
    call,
    page,
    rows.map((row) => ({ ...row, uid: `${row.teller} ${tieOf(row)}`, origin: maySee ? row.origin : '' })),
    await told.countMatching(db, ledger, tag || undefined, window, mostCounted),
  )
}

/** Tags that anyone may pull from the public organization (free-tier public images). */
export const freeTags: readonly string[] = ['latest', 'latest-dev']

/** True if a free tag of the repository ever pointed to this manifest, or to a manifest that needs this manifest or blob. */
export async function isFree(reader: Reader, repo: RepoRef, digest: string): Promise<boolean> {
  if (await store.wasEverTagged(reader, repo.ledger, digest, freeTags)) return true
  return store.wasNeeded(reader, repo, digest, freeTags)
}
