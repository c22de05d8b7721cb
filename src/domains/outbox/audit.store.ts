import { hash } from 'node:crypto'
import { addToLists, countNodes, countUpTo, type Keys, type Listing, listPage, removeFromLists } from '#db/listing.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Branch, Page } from '#lib/lists/paging.ts'
import { parentOf, top } from '#lib/uid.ts'
import { type AuditEntry, type AuditFilter, maxCounted } from './audit.model.ts'

const columns = sql`
  t.uid, t.type, t.subject, t.actor, t.act, t.remote_address AS "remoteAddress", t.user_agent AS "userAgent",
  t.request_id AS "requestId", t.body_type AS "bodyType", t.body, t.names, t.former, t.create_time AS "createTime"`
const kind = 'audit_log'
const listing: Listing = { kind, table: 'audit_log', columns }

// Lists of entries have one order by time in each group, and further ones for each actor and each type. An actor such as the
// operator, or a type, can have many entries in all groups. A subject has few entries, so an index of the table is sufficient for
// it.
const keyOf = (filter: { actor?: string; type?: string }): string => {
  return `by ${hash('sha256', JSON.stringify([filter.actor ?? '', filter.type ?? '']), 'base64url').slice(0, 16)}`
}

function keysOf({ actor, type, createTime }: Pick<AuditEntry, 'actor' | 'type' | 'createTime'>): Keys {
  return {
    create_time: createTime,
    [keyOf({ actor })]: createTime,
    [keyOf({ type })]: createTime,
    [keyOf({ actor, type })]: createTime,
  }
}

export async function insertEntry(tx: Tx, entry: AuditEntry): Promise<void> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO audit_log (uid, parent_uid, type, subject, actor, act, remote_address, user_agent, request_id, body_type,
                           body, names, former, create_time)
    VALUES (${entry.uid}, ${parentOf(entry.uid)}, ${entry.type}, ${entry.subject}, ${entry.actor}, ${entry.act},
            ${entry.remoteAddress}, ${entry.userAgent}, ${entry.requestId}, ${entry.bodyType}, ${entry.body},
            ${entry.names}, ${entry.former}, ${entry.createTime})
    RETURNING id`)
  await addToLists(tx, kind, entry.uid, row!.id, keysOf(entry))
}

/**
 * Latest entry about a resource, for the entry about its deletion. Resources of other kinds can have the same subject, such as
 * the quotas of an organization, so only types with the prefix of the type of the deletion count.
 */
export async function latestAbout(
  reader: Reader,
  { subject, type }: Pick<AuditEntry, 'subject' | 'type'>,
): Promise<Pick<AuditEntry, 'body' | 'names'> | undefined> {
  const prefix = type.replace(/(?<=\.)deleted(?:\.batch)?(?:\.v\d+)?$/, '')
  return reader.get(sql`
    SELECT body, names FROM audit_log
     WHERE subject = ${subject} AND substr(type, 1, CAST(${prefix.length} AS INTEGER)) = ${prefix}
     ORDER BY create_time DESC, uid DESC LIMIT 1`)
}

export async function findEntry(reader: Reader, uid: string): Promise<AuditEntry | undefined> {
  return reader.get<AuditEntry>(sql`SELECT ${columns} FROM audit_log t WHERE t.uid = ${uid}`)
}

/** Entries of a page, and one row more. */
export async function listEntries(reader: Reader, branches: readonly Branch[], page: Page, filter: AuditFilter) {
  return listPage<AuditEntry>(reader, listingFor(filter), branches, page, conditions(filter))
}

/** Number of entries. Undefined if more entries match a filter than are counted. */
export async function countEntries(
  reader: Reader,
  branches: readonly Branch[],
  filter: AuditFilter,
): Promise<number | undefined> {
  const filters = conditions(filter)
  if (filters.length === 0) return countNodes(reader, listing, branches)
  return countUpTo(reader, listingFor(filter), branches, filters, maxCounted)
}

function listingFor({ actor, subject, type, since, until }: AuditFilter): Listing {
  if (subject !== '') return listing
  const name = actor === '' && type === '' ? 'create_time' : keyOf({ actor, type })
  return { ...listing, keys: { name, ...(since && { from: since }), ...(until && { before: until }) } }
}

function conditions({ actor, subject, type, since, until }: AuditFilter): Sql[] {
  const found: Sql[] = []
  if (subject !== '') found.push(sql`t.subject = ${subject}`)
  if (actor !== '') found.push(sql`t.actor = ${actor}`)
  if (type !== '') found.push(sql`t.type = ${type}`)
  if (since !== '') found.push(sql`t.create_time >= ${since}`)
  if (until !== '') found.push(sql`t.create_time < ${until}`)
  return found
}

type Old = Pick<AuditEntry, 'uid' | 'actor' | 'type' | 'createTime'>

/**
 * Deletes up to `most` of the oldest entries from before `time`. Returns their number. Callers repeat the call until it returns
 * 0.
 */
export async function deleteBefore(tx: Tx, time: string, most: number): Promise<number> {
  const old = await tx.all<Old>(sql`
    SELECT t.uid, t.actor, t.type, t.create_time AS "createTime"
      FROM list_keys k JOIN audit_log t ON t.id = k.id
     WHERE k.list = ${`${kind}.create_time`} AND k.place = ${top} AND k.value < ${time}
     ORDER BY k.value, k.uid
     LIMIT ${most}`)
  for (const entry of old) {
    await tx.run(sql`DELETE FROM audit_log WHERE uid = ${entry.uid}`)
    await removeFromLists(tx, kind, entry.uid, keysOf(entry))
  }
  return old.length
}
