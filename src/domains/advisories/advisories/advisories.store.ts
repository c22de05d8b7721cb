import { insertsOf } from '#db/bulk.ts'
import { addToScopes, type Keys, type Listing, moveInLists, removeFromLists, scopeKeysOf } from '#db/listing.ts'
import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import { type Advisory, type AdvisoryEvent, aliasOrder, currentEvent, eventTypeNumber } from './advisories.model.ts'
import { indexAdvisories } from './advisory-index.store.ts'
import { facets, searchText, termsOf } from './advisory-terms.model.ts'

/** An advisory, and the hash of its import. */
export type Stored = { advisory: Advisory; id: number; sourceHash: string }
export type Row = Omit<Advisory, 'aliases' | 'events'> & { aliases: string; events: string; aliasOrder: string }
type StoredRow = Row & { id: number; sourceHash: string }

export const columns = sql`
  t.uid, t.advisory_id AS "advisoryId", t.legacy_advisory_id AS "legacyAdvisoryId", t.origin, t.author,
  t.artifact_name AS "artifactName", t.artifact_type AS "artifactType",
  t.artifact_architecture AS "artifactArchitecture", t.component_name AS "componentName",
  t.component_type AS "componentType", t.component_location AS "componentLocation", t.aliases, t.alias_order AS "aliasOrder", t.events,
  t.create_time AS "createTime", t.update_time AS "updateTime"`
export const listing: Listing = { kind: 'advisories', table: 'advisories', columns }

/** Converts a row, including the columns that a list can be sorted by. */
export function fromRow({ aliases, events, ...row }: Row): Advisory & { aliasOrder: string } {
  return { ...row, aliases: JSON.parse(aliases) as string[], events: JSON.parse(events) as AdvisoryEvent[] }
}

function toStored({ id, sourceHash, ...row }: StoredRow): Stored {
  return { advisory: fromRow(row), id: Number(id), sourceHash }
}

const keysOf = (advisory: Advisory): Keys => ({
  advisory_id: advisory.advisoryId,
  artifact_name: advisory.artifactName,
  create_time: advisory.createTime,
  update_time: advisory.updateTime,
  alias_order: aliasOrder(advisory),
})

export async function findAdvisory(reader: Reader, uid: string): Promise<Stored | undefined> {
  const row = await reader.get<StoredRow>(sql`
    SELECT ${columns}, t.id, t.source_hash AS "sourceHash" FROM advisories t WHERE t.uid = ${uid}`)
  return row && toStored(row)
}

/** Advisories of a group with one of the public IDs. The keys are the public IDs. */
export async function findImported(
  reader: Reader,
  parent: string,
  advisoryIds: readonly string[],
): Promise<Map<string, Stored>> {
  const rows = await reader.all<StoredRow>(sql`
    SELECT ${columns}, t.id, t.source_hash AS "sourceHash"
      FROM advisories t WHERE t.parent_uid = ${parent} AND t.advisory_id IN (${list(advisoryIds)})`)
  return new Map(rows.map((row) => [row.advisoryId, toStored(row)]))
}

/** Inserts and updates advisories together with their list entries, counters and search terms. */
export async function saveAdvisories(
  tx: Tx,
  saved: readonly { before: Stored | undefined; after: Advisory; sourceHash: string }[],
): Promise<void> {
  const ids = await insertAll(
    tx,
    saved.filter(({ before }) => !before),
  )
  for (const { before, after, sourceHash } of saved) if (before) await update(tx, before, after, sourceHash)
  await indexAdvisories(
    tx,
    saved.map(({ before, after }) => ({
      uid: after.uid,
      id: before?.id ?? ids.get(after.uid)!,
      text: searchText(after),
      before: before ? termsOf(before.advisory) : [],
      after: termsOf(after),
    })),
  )
}

async function insertAll(
  tx: Tx,
  added: readonly { after: Advisory; sourceHash: string }[],
): Promise<ReadonlyMap<string, number>> {
  const ids = new Map<string, number>()
  const rows = added.map(
    ({ after: one, sourceHash }) => sql`
    (${one.uid}, ${parentOf(one.uid)}, ${one.advisoryId}, ${one.legacyAdvisoryId}, ${one.origin}, ${one.author},
     ${one.artifactName}, ${one.artifactType}, ${one.artifactArchitecture}, ${one.componentName},
     ${one.componentType}, ${one.componentLocation}, ${JSON.stringify(one.aliases)}, ${aliasOrder(one)}, ${JSON.stringify(one.events)},
     ${latestType(one)}, ${sourceHash}, ${one.createTime}, ${one.updateTime})`,
  )
  // Another transaction may insert the same advisory at the same time. PostgreSQL then repeats this transaction.
  const made = sql`ON CONFLICT (parent_uid, advisory_id) DO NOTHING RETURNING id, uid`
  const into = sql`
    INSERT INTO advisories (uid, parent_uid, advisory_id, legacy_advisory_id, origin, author, artifact_name,
           artifact_type, artifact_architecture, component_name, component_type, component_location, aliases, alias_order, events,
           latest_event_type, source_hash, create_time, update_time)`
  for (const insert of insertsOf(into, rows, made)) {
    for (const { id, uid } of await tx.all<{ id: number; uid: string }>(insert)) ids.set(uid, Number(id))
  }
  const entries = added.map(({ after }) => {
    return { uid: after.uid, id: ids.get(after.uid)!, keys: keysOf(after), scopes: scopeKeysOf(after.uid) }
  })
  await addToScopes(tx, listing.kind, entries)
  return ids
}

async function update(tx: Tx, before: Stored, after: Advisory, sourceHash: string): Promise<void> {
  await tx.run(sql`
    UPDATE advisories
       SET legacy_advisory_id = ${after.legacyAdvisoryId}, origin = ${after.origin}, author = ${after.author},
           artifact_name = ${after.artifactName}, artifact_type = ${after.artifactType},
           artifact_architecture = ${after.artifactArchitecture}, component_name = ${after.componentName},
           component_type = ${after.componentType}, component_location = ${after.componentLocation},
           aliases = ${JSON.stringify(after.aliases)}, alias_order = ${aliasOrder(after)}, events = ${JSON.stringify(after.events)},
           latest_event_type = ${latestType(after)}, source_hash = ${sourceHash},
           create_time = ${after.createTime}, update_time = ${after.updateTime}
     WHERE id = ${before.id}`)
  await moveInLists(tx, listing.kind, after.uid, keysOf(before.advisory), keysOf(after))
}

function latestType(advisory: Advisory): number {
  const current = currentEvent(advisory)
  return current ? eventTypeNumber(current.type) : 0
}

/** True if the group has another advisory on the same component of the same artifact that shares a vulnerability ID. */
export async function hasDuplicate(reader: Reader, parent: string, one: Advisory): Promise<boolean> {
  const { artifactName, aliases } = one
  const named = aliases.length > 0
  const row = await reader.get(sql`
    SELECT 1 AS found
      FROM advisory_terms k
      JOIN advisory_postings p ON p.term_id = k.id
      JOIN advisories t ON t.id = p.id
     WHERE k.facet = ${named ? facets.alias : facets.artifactName} AND k.value IN (${list(named ? aliases : [artifactName])})
       AND p.uid > ${`${parent}/`} AND p.uid < ${`${parent}0`}
       AND ${join(
         [
           sql`t.parent_uid = ${parent} AND t.uid <> ${one.uid}`,
           sql`t.artifact_name = ${artifactName} AND t.artifact_type = ${one.artifactType}`,
           sql`t.artifact_architecture = ${one.artifactArchitecture} AND t.component_name = ${one.componentName}`,
           sql`t.component_type = ${one.componentType} AND t.component_location = ${one.componentLocation}`,
           ...(named ? [] : [sql`t.aliases = '[]'`]),
         ],
         ' AND ',
       )}
     LIMIT 1`)
  return row !== undefined
}

/** Deletes an advisory together with its list entries, counters and search terms. */
export async function deleteAdvisory(tx: Tx, { advisory, id }: Stored): Promise<void> {
  const { uid } = advisory
  await tx.run(sql`DELETE FROM advisories WHERE id = ${id}`)
  await removeFromLists(tx, listing.kind, uid, keysOf(advisory))
  await indexAdvisories(tx, [{ uid, id, text: undefined, before: termsOf(advisory), after: [] }])
}
