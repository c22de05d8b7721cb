import { allOf, insertsOf } from '#db/bulk.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import {
  type AffectedPackage,
  affectedStates,
  type NamedRecord,
  readsToDrop,
  type SourceEnd,
  type SourceFacts,
  type SourceRecord,
  severityLevels,
} from './records.model.ts'

/** A data source with its state. Times are empty if there are none. */
export type StoredSource = SourceFacts & {
  sourceNo: number
  fingerprint: string
  buildTime: string
  /** `fetchTime` is the time of the last complete read, `tryTime` the time of the last attempt. */
  fetchTime: string
  tryTime: string
  generation: number
  error: string
}

const sourceColumns = sql`
  id AS "sourceNo", name, url, licence, ecosystems, fingerprint, build_time AS "buildTime", fetch_time AS "fetchTime",
  try_time AS "tryTime", generation, error`

type SourceRow = Omit<StoredSource, 'ecosystems'> & { ecosystems: string }

const fromSourceRow = (row: SourceRow): StoredSource => ({
  ...row,
  ecosystems: JSON.parse(row.ecosystems) as string[],
})

/** All data sources by name. */
export async function listSources(reader: Reader): Promise<StoredSource[]> {
  const rows = await reader.all<SourceRow>(sql`SELECT ${sourceColumns} FROM vulnerability_sources ORDER BY name`)
  return rows.map(fromSourceRow)
}

export async function findSource(reader: Reader, name: string): Promise<StoredSource | undefined> {
  const row = await reader.get<SourceRow>(sql`
    SELECT ${sourceColumns} FROM vulnerability_sources WHERE name = ${name}`)
  return row && fromSourceRow(row)
}

/** Creates or updates the row of a data source whose run begins. Returns the row. */
export async function openSource(tx: Tx, { name, url, licence, ecosystems }: SourceFacts, now: string) {
  const row = await tx.get<SourceRow>(sql`
    INSERT INTO vulnerability_sources (name, url, licence, ecosystems, try_time, generation)
    VALUES (${name}, ${url}, ${licence}, ${JSON.stringify(ecosystems)}, ${now}, 1)
        ON CONFLICT (name) DO UPDATE SET url = excluded.url, licence = excluded.licence,
           ecosystems = excluded.ecosystems, try_time = excluded.try_time, generation = vulnerability_sources.generation + 1
    RETURNING ${sourceColumns}`)
  return fromSourceRow(row!)
}

export async function closeSource(tx: Tx, sourceNo: number, end: SourceEnd, now: string): Promise<void> {
  await tx.run(
    end.error === ''
      ? sql`UPDATE vulnerability_sources
               SET error = '', fingerprint = ${end.fingerprint}, build_time = ${end.buildTime}, fetch_time = ${now}
             WHERE id = ${sourceNo}`
      : sql`UPDATE vulnerability_sources SET error = ${end.error} WHERE id = ${sourceNo}`,
  )
  if (end.error !== '') await noteFailure(tx, sourceNo, end.error, now)
  else {
    const covered = JSON.stringify(await ecosystemsCovered(tx, sourceNo))
    await tx.run(sql`
      INSERT INTO vulnerability_source_reads (source_id, fetch_time, build_time, ecosystems)
      VALUES (${sourceNo}, ${now}, ${end.buildTime}, ${covered})
          ON CONFLICT (source_id, fetch_time) DO UPDATE SET build_time = excluded.build_time,
             ecosystems = excluded.ecosystems, error = ''`)
  }
  await deleteOldReads(tx, sourceNo)
}

const maxCovered = 1000

/**
 * The declared ecosystems of a source for which it has records. If a source has no record for a release, it does not cover the
 * release.
 */
async function ecosystemsCovered(tx: Tx, sourceNo: number): Promise<string[]> {
  const source = await tx.get<{ ecosystems: string }>(sql`
    SELECT ecosystems FROM vulnerability_sources WHERE id = ${sourceNo}`)
  const named = JSON.parse(source?.ecosystems ?? '[]') as string[]
  if (named.length === 0) return []
  const spoken = await tx.all<{ ecosystem: string }>(sql`
    SELECT ecosystem FROM vulnerability_source_ecosystems WHERE source_id = ${sourceNo} ORDER BY ecosystem LIMIT 10000`)
  return spoken
    .map(({ ecosystem }) => ecosystem)
    .filter((one) => named.includes(one) || named.includes(one.split(':')[0]!))
    .slice(0, maxCovered)
}

/** Stores the ecosystems of the records of a run. */
export async function noteEcosystems(tx: Tx, run: RunOf, records: readonly SourceRecord[]): Promise<void> {
  const spoken = new Set(
    records.flatMap(({ withdrawTime, affected }) =>
      withdrawTime === '' ? affected.map(({ ecosystem }) => ecosystem) : [],
    ),
  )
  const rows = [...spoken].sort().map((one) => sql`(${run.sourceNo}, ${one}, ${run.generation})`)
  const then = sql`ON CONFLICT (source_id, ecosystem) DO UPDATE SET generation = excluded.generation
    WHERE vulnerability_source_ecosystems.generation <> excluded.generation`
  const into = sql`INSERT INTO vulnerability_source_ecosystems (source_id, ecosystem, generation)`
  for (const insert of insertsOf(into, rows, then)) await tx.run(insert)
}

/** Deletes ecosystems that a complete run had no records for. */
export async function endEcosystems(tx: Tx, sourceNo: number, generation: number): Promise<void> {
  await tx.run(sql`
    DELETE FROM vulnerability_source_ecosystems WHERE source_id = ${sourceNo} AND generation < ${generation}`)
}

/** Deletes stored reads of a source that `readsToDrop` selects. */
async function deleteOldReads(tx: Tx, sourceNo: number): Promise<void> {
  const rows = await tx.all<{ fetchTime: string; ecosystems: string }>(sql`
    SELECT fetch_time AS "fetchTime", ecosystems FROM vulnerability_source_reads
     WHERE source_id = ${sourceNo} ORDER BY fetch_time LIMIT 10000`)
  const reads = rows.map(({ fetchTime, ecosystems }) => ({ fetchTime, whole: ecosystems !== '' }))
  for (const some of chunks(readsToDrop(reads), 500)) {
    await tx.run(sql`
      DELETE FROM vulnerability_source_reads WHERE source_id = ${sourceNo} AND fetch_time IN (${list(some)})`)
  }
}

/** Stores a failure only if the read before was successful. */
async function noteFailure(tx: Tx, sourceNo: number, error: string, now: string): Promise<void> {
  const last = await tx.get<{ error: string }>(sql`
    SELECT error FROM vulnerability_source_reads WHERE source_id = ${sourceNo} ORDER BY fetch_time DESC LIMIT 1`)
  if (last && last.error !== '') return
  await tx.run(sql`
    INSERT INTO vulnerability_source_reads (source_id, fetch_time, build_time, error)
    VALUES (${sourceNo}, ${now}, '', ${error})
        ON CONFLICT (source_id, fetch_time) DO UPDATE SET error = excluded.error`)
}

/**
 * A read of a data source. `whole` is true if the read was complete. If `error` is set, all reads from that time on have failed.
 */
export type SourceRead = {
  sourceNo: number
  name: string
  fetchTime: string
  buildTime: string
  whole: boolean
  ecosystems: string[]
  /** Requested ecosystems that the records of an import are about. Only for imports that declare no ecosystems. */
  imported: string[]
  error: string
}

/** Stored reads of the sources that cover some ecosystems, sorted by source and time. */
export async function listReads(reader: Reader, ecosystems: readonly string[]): Promise<SourceRead[]> {
  const sources = (await listSources(reader)).filter((one) => ecosystems.some((asked) => mayCover(one, asked)))
  const imports = await importsOf(reader, ecosystems)
  const reads: SourceRead[] = []
  for (const sourceNo of new Set([...sources.map((one) => one.sourceNo), ...imports.keys()])) {
    reads.push(...(await readsOf(reader, sourceNo, imports.get(sourceNo) ?? [])))
  }
  return reads
}

/**
 * Imports that declare no ecosystem, with the requested ecosystems that their records are about. A record without a release is
 * about all releases.
 */
async function importsOf(reader: Reader, ecosystems: readonly string[]): Promise<Map<number, string[]>> {
  const asked = [...new Set(ecosystems.flatMap((one) => [one, one.split(':')[0]!]))].filter((one) => one !== '')
  const found = new Map<number, string[]>()
  for (const some of chunks(asked, 400)) {
    const rows = await reader.all<{ sourceNo: number; ecosystem: string }>(sql`
      SELECT e.source_id AS "sourceNo", e.ecosystem
        FROM vulnerability_sources s JOIN vulnerability_source_ecosystems e ON e.source_id = s.id
       WHERE s.ecosystems = '[]' AND e.ecosystem IN (${list(some)}) ORDER BY e.ecosystem`)
    for (const { sourceNo, ecosystem } of rows) {
      found.set(sourceNo, [...(found.get(sourceNo) ?? []), ecosystem])
    }
  }
  return found
}

const mayCover = ({ ecosystems }: StoredSource, asked: string): boolean =>
  ecosystems.includes(asked) || ecosystems.includes(asked.split(':')[0]!)

/** `deleteOldReads` limits the number of these rows. */
async function readsOf(reader: Reader, sourceNo: number, imported: string[]): Promise<SourceRead[]> {
  const rows = await reader.all<Omit<SourceRead, 'ecosystems' | 'whole' | 'imported'> & { ecosystems: string }>(sql`
    SELECT r.source_id AS "sourceNo", s.name, r.fetch_time AS "fetchTime", r.build_time AS "buildTime", r.ecosystems,
           r.error
      FROM vulnerability_source_reads r JOIN vulnerability_sources s ON s.id = r.source_id
     WHERE r.source_id = ${sourceNo} ORDER BY r.fetch_time LIMIT 10000`)
  return rows.map((row) => ({
    ...{ ...row, imported },
    whole: row.ecosystems !== '',
    ecosystems: row.ecosystems === '' ? [] : (JSON.parse(row.ecosystems) as string[]),
  }))
}

/** Columns with the names of a record. The alias of the table is `r`. */
export const namedColumns = sql`r.record_id AS "recordId", r.aliases, r.upstream`
export type NamedRow = { recordId: string; aliases: string; upstream: string }

export const toNamed = ({ recordId, aliases, upstream }: NamedRow): NamedRecord => ({
  ...{ id: recordId, aliases: JSON.parse(aliases) as string[], upstream: JSON.parse(upstream) as string[] },
})

/** A current record. `core` is the hash of the record without its texts. It is empty if the hash is unknown. */
export type CurrentRecord = { recordNo: number; id: string; hash: string; core: string; severities: string }

const recordColumns = sql`r.id AS "recordNo", r.record_id AS id, r.hash, r.core_hash AS core, r.severities`

export async function findCurrent(reader: Reader, sourceNo: number, ids: readonly string[]): Promise<CurrentRecord[]> {
  return reader.all<CurrentRecord>(sql`
    SELECT ${recordColumns} FROM vulnerability_records r
     WHERE r.source_id = ${sourceNo} AND r.record_id IN (${list(ids)}) AND r.until_time = ''`)
}

/** Some records of a source that no run since `generation` contained. */
export async function listOutdated(
  reader: Reader,
  sourceNo: number,
  generation: number,
  most: number,
): Promise<CurrentRecord[]> {
  return reader.all<CurrentRecord>(sql`
    SELECT ${recordColumns} FROM vulnerability_records r
     WHERE r.source_id = ${sourceNo} AND r.generation < ${generation} AND r.until_time = ''
     ORDER BY r.source_id, r.generation, r.id LIMIT ${most}`)
}

export async function renewRecords(tx: Tx, records: readonly number[], generation: number): Promise<void> {
  for (const some of chunks(records, 500)) {
    await tx.run(sql`UPDATE vulnerability_records SET generation = ${generation} WHERE id IN (${list(some)})`)
  }
}

/**
 * A package in an ecosystem with a changed advisory entry. The entry comes from a shared source, or from the advisories of the
 * `organization`.
 */
export type Touched = { ecosystem: string; name: string; organization: string }

/**
 * Ends these records. An entry that findings refer to stays, with its end time. Other entries are deleted. Returns the affected
 * packages.
 */
export async function retireRecords(tx: Tx, records: readonly number[], now: string): Promise<Touched[]> {
  const touched: Touched[] = []
  for (const some of chunks(records, 200)) {
    const of = list(some)
    touched.push(
      ...(await tx.all<Touched>(sql`
        SELECT DISTINCT a.ecosystem, a.name, a.place AS organization FROM affected_packages a
         WHERE a.record_no IN (${of}) AND a.until_time = ''`)),
    )
    await tx.run(sql`
      DELETE FROM affected_packages
       WHERE record_no IN (${of}) AND NOT EXISTS (SELECT 1 FROM findings f WHERE f.affected_id = affected_packages.id)`)
    await tx.run(sql`
      UPDATE affected_packages SET until_time = ${now} WHERE record_no IN (${of}) AND until_time = ''`)
    // Only current records have rows with their names.
    await tx.run(sql`DELETE FROM vulnerability_record_names WHERE record_no IN (${of})`)
    await tx.run(sql`
      DELETE FROM vulnerability_records
       WHERE id IN (${of})
         AND NOT EXISTS (SELECT 1 FROM affected_packages a WHERE a.record_no = vulnerability_records.id)`)
    await tx.run(sql`UPDATE vulnerability_records SET until_time = ${now} WHERE id IN (${of}) AND until_time = ''`)
  }
  return touched
}

/** A record to insert or update. `core` is missing for sources whose records never change in their texts alone. */
export type NewRecord = { record: SourceRecord; hash: string; core?: string; organization: string }

export type RunOf = { sourceNo: number; generation: number; now: string }

/** Limit on the former texts of one record. */
const mostTexts = 100

/** Updates the texts of a current record. If a report may contain the former texts, these are stored with their end time. */
export async function editRecord(tx: Tx, run: RunOf, recordNo: number, { record, hash }: NewRecord): Promise<void> {
  await tx.run(sql`
    INSERT INTO vulnerability_record_texts (record_no, until_time, summary, "references")
    SELECT r.id, ${run.now}, r.summary, r."references" FROM vulnerability_records r
     WHERE r.id = ${recordNo} AND EXISTS (SELECT 1 FROM affected_packages a JOIN findings f ON f.affected_id = a.id
                                           WHERE a.record_no = r.id)
        ON CONFLICT DO NOTHING`)
  await tx.run(sql`
    UPDATE vulnerability_records
       SET generation = ${run.generation}, hash = ${hash}, summary = ${record.summary},
           "references" = ${JSON.stringify(record.references)}, publish_time = ${record.publishTime},
           modify_time = ${record.modifyTime}
     WHERE id = ${recordNo}`)
  await tx.run(sql`
    DELETE FROM vulnerability_record_texts WHERE record_no = ${recordNo} AND until_time <= (
      SELECT t.until_time FROM vulnerability_record_texts t WHERE t.record_no = ${recordNo}
       ORDER BY t.until_time DESC LIMIT 1 OFFSET ${mostTexts})`)
}

/** Inserts records that have no current version. */
export async function insertRecords(tx: Tx, run: RunOf, added: readonly NewRecord[]): Promise<void> {
  const rows = added.map(({ record: one, hash, core = '' }) => {
    const lists = [one.aliases, one.upstream, one.severities, one.references].map((given) => JSON.stringify(given))
    const [aliases, upstream, severities, references] = lists as [string, string, string, string]
    return sql`(${run.sourceNo}, ${one.id}, ${run.generation}, ${hash}, ${core}, ${aliases}, ${upstream}, ${one.summary},
      ${severities}, ${references}, ${one.publishTime}, ${one.modifyTime}, ${one.withdrawTime}, ${run.now})`
  })
  const into = sql`
    INSERT INTO vulnerability_records (source_id, record_id, generation, hash, core_hash, aliases, upstream, summary, severities,
           "references", publish_time, modify_time, withdraw_time, from_time)`
  const numbers = new Map<string, number>()
  for (const insert of insertsOf(into, rows, sql`RETURNING id AS "recordNo", record_id AS id`)) {
    for (const { recordNo, id } of await tx.all<CurrentRecord>(insert)) numbers.set(id, recordNo)
  }
  await insertAll(
    tx,
    sql`INSERT INTO vulnerability_record_names (name, record_no)`,
    added.flatMap(({ record: { id, aliases, upstream } }) => {
      return [...new Set([id, ...aliases, ...upstream])].map((name) => sql`(${name}, ${numbers.get(id)!})`)
    }),
  )
  await insertAll(
    tx,
    sql`INSERT INTO affected_packages (record_no, place, ecosystem, name, ranges, versions, state, severity, qualifiers)`,
    added.flatMap(({ record, organization }) => {
      if (record.withdrawTime !== '') return []
      return record.affected.map((one) => affectedRow(numbers.get(record.id)!, organization, one))
    }),
  )
}

function affectedRow(recordNo: number, organization: string, one: AffectedPackage): Sql {
  const severity = one.severity === '' ? 0 : severityLevels[one.severity]
  return sql`(${recordNo}, ${organization}, ${one.ecosystem}, ${one.name}, ${JSON.stringify(one.ranges)},
    ${JSON.stringify(one.versions)}, ${affectedStates[one.state]}, ${severity}, ${JSON.stringify(one.qualifiers)})`
}

async function insertAll(tx: Tx, into: Sql, rows: readonly Sql[]): Promise<void> {
  for (const insert of insertsOf(into, rows)) await tx.run(insert)
}

/** Names of those of the records that have severities. Other records with these names may have taken their severity from them. */
export async function ratingNames(reader: Reader, records: readonly number[]): Promise<string[]> {
  const rows = await reader.all<{ name: string }>(sql`
    SELECT DISTINCT n.name FROM vulnerability_records r JOIN vulnerability_record_names n ON n.record_no = r.id
     WHERE r.id IN (${list(records)}) AND r.severities <> '[]'`)
  return rows.map(({ name }) => name)
}

/** Packages in current records that have one of the names. */
export async function packagesNamed(reader: Reader, names: readonly string[], most: number): Promise<Touched[]> {
  return reader.all<Touched>(sql`
    SELECT DISTINCT a.ecosystem, a.name, a.place AS organization
      FROM vulnerability_record_names n JOIN affected_packages a ON a.record_no = n.record_no
     WHERE n.name IN (${list(names)}) AND a.until_time = '' LIMIT ${most}`)
}

/** Package names among the given ones that a component or its source package has. */
export async function namesInUse(reader: Reader, names: readonly string[]): Promise<Set<string>> {
  const used = (some: readonly string[]) => sql`
    SELECT DISTINCT c.name FROM components c WHERE c.name IN (${list(some)})
    UNION
    SELECT DISTINCT c.origin FROM components c WHERE c.origin IN (${list(some)}) AND c.origin <> c.name`
  const rows = await allOf<{ name: string }, string>(reader, names, used, 500)
  return new Set(rows.map(({ name }) => name))
}

export async function countRecords(reader: Reader): Promise<Map<number, number>> {
  const rows = await reader.all<{ sourceNo: number; total: number }>(sql`
    SELECT r.source_id AS "sourceNo", count(*) AS total FROM vulnerability_records r
     WHERE r.until_time = '' GROUP BY r.source_id`)
  return new Map(rows.map(({ sourceNo, total }) => [sourceNo, total]))
}
