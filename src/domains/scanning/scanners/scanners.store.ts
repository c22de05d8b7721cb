import { servedUrl as urlOfServers } from '#db/nodes.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { Scanner } from './scanners.model.ts'

type Row = Omit<Scanner, 'hasCredential' | 'groups' | 'consumes' | 'onPush'> & {
  hasCredential: number
  groups: string
  consumes: string
  onPush: number
}

const columns = sql`
  id, name, url, CASE WHEN length(credential) > 0 THEN 1 ELSE 0 END AS "hasCredential", groups,
  registry_url AS "registryUrl", on_push AS "onPush", title, consumes, produces, build_time AS "buildTime",
  ask_time AS "askTime", problem, create_time AS "createTime", update_time AS "updateTime"`

const fromRow = (row: Row): Scanner => ({
  ...row,
  hasCredential: row.hasCredential === 1,
  groups: JSON.parse(row.groups) as string[],
  consumes: JSON.parse(row.consumes) as string[],
  onPush: row.onPush === 1,
})

/** All scanners by name. There are few. */
export async function listScanners(reader: Reader): Promise<Scanner[]> {
  return (await reader.all<Row>(sql`SELECT ${columns} FROM scanners ORDER BY name`)).map(fromRow)
}

export async function hasScanner(reader: Reader, id: number): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM scanners WHERE id = ${id}`)) !== undefined
}

/** URL and encrypted credential of a scanner. The credential is empty if there is none. */
export async function findAddress(
  reader: Reader,
  id: number,
): Promise<{ url: string; credential: Uint8Array } | undefined> {
  return reader.get(sql`SELECT url, credential FROM scanners WHERE id = ${id}`)
}

/** The encrypted credential. Empty if there is none. */
export async function encryptedCredentialOf(reader: Reader, id: number): Promise<Uint8Array> {
  const row = await reader.get<{ credential: Uint8Array }>(sql`SELECT credential FROM scanners WHERE id = ${id}`)
  return row?.credential ?? new Uint8Array()
}

type ScannerSettings = Pick<Scanner, 'name' | 'url' | 'groups' | 'registryUrl' | 'onPush'>

export async function insertScanner(tx: Tx, one: ScannerSettings, credential: Uint8Array, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO scanners (name, url, credential, groups, registry_url, on_push, create_time, update_time)
    VALUES (${one.name}, ${one.url}, ${credential}, ${JSON.stringify(one.groups)}, ${one.registryUrl},
            ${Number(one.onPush)}, ${now}, ${now})`)
}

/** Replaces the settings of a scanner. The scanner's metadata will be read again. */
export async function patchScanner(
  tx: Tx,
  id: number,
  one: ScannerSettings,
  credential: Uint8Array,
  now: string,
): Promise<void> {
  await tx.run(sql`
    UPDATE scanners SET url = ${one.url}, credential = ${credential}, groups = ${JSON.stringify(one.groups)},
           registry_url = ${one.registryUrl}, on_push = ${Number(one.onPush)}, ask_time = '', problem = '',
           update_time = ${now}
     WHERE id = ${id}`)
}

/** Deletes a scanner. Returns false if there is no scanner with this name. */
export async function deleteScanner(tx: Tx, name: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM scanners WHERE name = ${name}`)) === 1
}

/** Stores the metadata of a scanner. Does nothing if the operator has changed the scanner in the meantime. */
export async function storeScannerMetadata(
  tx: Tx,
  { id, updateTime }: Pick<Scanner, 'id' | 'updateTime'>,
  metadata: Pick<Scanner, 'title' | 'consumes' | 'produces' | 'buildTime' | 'askTime' | 'problem'>,
): Promise<void> {
  await tx.run(sql`
    UPDATE scanners SET title = ${metadata.title}, consumes = ${JSON.stringify(metadata.consumes)}, produces = ${metadata.produces},
           build_time = ${metadata.buildTime}, ask_time = ${metadata.askTime}, problem = ${metadata.problem}
     WHERE id = ${id} AND update_time = ${updateTime}`)
}

export async function noteProblem(tx: Tx, { id }: Pick<Scanner, 'id'>, problem: string): Promise<void> {
  await tx.run(sql`UPDATE scanners SET problem = ${problem} WHERE id = ${id} AND problem <> ${problem}`)
}

/** URL at which clients reach the registry. Empty if no server has such a URL. */
export async function servedUrl(reader: Reader, configured: string): Promise<string> {
  return configured || (await urlOfServers(reader))
}
