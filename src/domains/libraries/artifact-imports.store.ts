import { insertsOf } from '#db/bulk.ts'
import { addToScopes, type Keys, moveInLists } from '#db/listing.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { addTexts } from '#db/trigrams.ts'
import { chunks } from '#lib/chunks.ts'
import { type Artifact, type StoredVersion, sortKeyOf } from './artifacts.model.ts'
import { columns, keysOf, kind, searchKind, versionColumns } from './artifacts.store.ts'

/** A library with all its versions, and the lists that contain the library. */
export type Stored = { id: number; artifact: Artifact; scopes: string[]; versions: Map<string, StoredVersion> }

/** Change of a library. `before` is the stored state of a library that exists. `versions` contains new and changed versions. */
export type Change = {
  before: Stored | undefined
  artifact: Artifact
  scopes: readonly string[]
  versions: readonly StoredVersion[]
}

const uidsPerStatement = 200

/** Stored libraries with these uids. The keys are the uids. */
export async function findStored(tx: Tx, uids: readonly string[]): Promise<Map<string, Stored>> {
  const stored = new Map<string, Stored>()
  const byId = new Map<number, Stored>()
  for (const some of chunks(uids, uidsPerStatement)) {
    const rows = await tx.all<Artifact & { id: number; scopes: string }>(sql`
      SELECT t.id, t.places AS scopes, ${columns} FROM artifacts t WHERE t.uid IN (${list(some)})`)
    for (const { id, scopes, ...artifact } of rows) {
      const one: Stored = { id, artifact, scopes: JSON.parse(scopes) as string[], versions: new Map() }
      stored.set(artifact.uid, one)
      byId.set(id, one)
    }
  }
  for (const some of chunks([...byId.keys()], uidsPerStatement)) {
    const rows = await tx.all<Omit<StoredVersion, 'remediated'> & { id: number; remediated: number }>(sql`
      SELECT v.artifact_id AS id, ${versionColumns} FROM artifact_versions v WHERE v.artifact_id IN (${list(some)})`)
    for (const { id, remediated, ...row } of rows) {
      byId.get(id)!.versions.set(row.version, { ...row, remediated: remediated === 1 })
    }
  }
  return stored
}

/** Writes libraries with their versions, list entries, totals and search terms. */
export async function saveChanges(tx: Tx, changes: readonly Change[]): Promise<void> {
  const added = changes.filter(({ before }) => !before)
  const ids = await insertArtifacts(tx, added)
  for (const { artifact } of added) if (!ids.has(artifact.uid)) throw new Error(`${artifact.uid} was not inserted`)
  const entries = added.map(({ artifact, scopes }) => {
    return { uid: artifact.uid, id: ids.get(artifact.uid)!, keys: keysOf(artifact), scopes }
  })
  await addToScopes(tx, kind, entries)
  for (const ecosystem of ['java', 'python'] as const) {
    const some = added.filter(({ artifact }) => artifact.ecosystem === ecosystem)
    const rows = some.map(({ artifact: { uid, name } }) => ({ id: ids.get(uid)!, text: name }))
    await addTexts(tx, searchKind(ecosystem), rows)
  }
  for (const { before, artifact, scopes } of changes) if (before) await patchArtifact(tx, before, artifact, scopes)
  await saveVersions(
    tx,
    changes.flatMap(({ before, artifact, versions }) => {
      const id = before?.id ?? ids.get(artifact.uid)!
      return versions.map((version) => ({ id, artifact, version }))
    }),
  )
}

async function insertArtifacts(tx: Tx, added: readonly Change[]): Promise<Map<string, number>> {
  const rows = added.map(({ artifact: a, scopes }) => {
    return sql`(${a.uid}, ${a.ecosystem}, ${a.name}, ${a.description}, ${a.latestVersion}, ${a.versionCount},
                ${JSON.stringify(scopes)}, ${a.createTime}, ${a.updateTime})`
  })
  const into = sql`INSERT INTO artifacts (uid, ecosystem, name, description, latest_version, version_count, places,
                                          create_time, update_time)`
  const ids = new Map<string, number>()
  for (const insert of insertsOf(into, rows, sql`RETURNING id, uid`)) {
    for (const { id, uid } of await tx.all<{ id: number; uid: string }>(insert)) ids.set(uid, id)
  }
  return ids
}

async function patchArtifact(tx: Tx, before: Stored, after: Artifact, scopes: readonly string[]): Promise<void> {
  await tx.run(sql`
    UPDATE artifacts
       SET description = ${after.description}, latest_version = ${after.latestVersion},
           version_count = ${after.versionCount}, places = ${JSON.stringify(scopes)},
           create_time = ${after.createTime}, update_time = ${after.updateTime}
     WHERE id = ${before.id}`)
  const keys: Keys = keysOf(after)
  await moveInLists(tx, kind, after.uid, keysOf(before.artifact), keys, before.scopes)
  const more = scopes.filter((scope) => !before.scopes.includes(scope))
  if (more.length > 0) await addToScopes(tx, kind, [{ uid: after.uid, id: before.id, keys, scopes: more }])
}

async function saveVersions(
  tx: Tx,
  versions: readonly { id: number; artifact: Artifact; version: StoredVersion }[],
): Promise<void> {
  const rows = versions.map(({ id, artifact, version: v }) => {
    const key = sortKeyOf(artifact.ecosystem, v.version)
    return sql`(${id}, ${key}, ${v.version}, ${v.description}, ${v.sizeBytes}, ${v.remediated ? 1 : 0},
                ${v.releaseTime}, ${v.changeTime}, ${v.firstTime})`
  })
  const into = sql`INSERT INTO artifact_versions (artifact_id, sort_key, version, description, size_bytes, remediated,
                                                  release_time, change_time, first_time)`
  const change = sql`
      ON CONFLICT (artifact_id, sort_key, version) DO UPDATE
     SET description = excluded.description, size_bytes = excluded.size_bytes, remediated = excluded.remediated,
         release_time = excluded.release_time, change_time = excluded.change_time`
  for (const insert of insertsOf(into, rows, change)) await tx.run(insert)
}

/** Position of an import run. Empty if the run has not begun or has ended. */
export async function findRun(reader: Reader, run: string): Promise<string> {
  const row = await reader.get<{ name: string }>(sql`SELECT after_name AS name FROM artifact_runs WHERE run = ${run}`)
  return row?.name ?? ''
}

/** Stores the position of an import run. An empty position ends the run. */
export async function saveRun(tx: Tx, run: string, after: string, now: string): Promise<void> {
  if (after === '') {
    await tx.run(sql`DELETE FROM artifact_runs WHERE run = ${run}`)
    return
  }
  await tx.run(sql`
    INSERT INTO artifact_runs (run, after_name, update_time) VALUES (${run}, ${after}, ${now})
        ON CONFLICT (run) DO UPDATE SET after_name = excluded.after_name, update_time = excluded.update_time`)
}
