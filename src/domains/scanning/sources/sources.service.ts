// Receives the data sources that the sync command reads. One run consists of several requests.

import type { Call, Work } from '#app.ts'
import { type FieldViolation, invalid, refuseIfAny } from '#lib/errors.ts'
import { neededSources } from '#sources/definitions.ts'
import { storedEcosystems } from '../lists/lists.store.ts'
import * as ranks from '../ranks/ranks.service.ts'
import { countRanks } from '../ranks/ranks.store.ts'
import { affectedStates, severityLevels } from '../records/records.model.ts'
import * as records from '../records/records.service.ts'
import * as stored from '../records/records.store.ts'

export type { StoredSource } from '../records/records.store.ts'

/** Name of a data source with the number of its run. */
export type RunName = { name: string; generation: number }

const maxRecords = 500
const maxRanks = 2000
const maxFingerprint = 512

export async function listSources(call: Call): Promise<(stored.StoredSource & { records: number })[]> {
  const { app } = call
  const sources = await stored.listSources(app.db)
  const [counts, ranked] = [await stored.countRecords(app.db), await countRanks(app.db)]
  return sources.map((one) => ({ ...one, records: (counts.get(one.sourceNo) ?? 0) + (ranked.get(one.sourceNo) ?? 0) }))
}

/** Names of the data sources that the packages of stored images need. */
export async function listNeeded({ app }: Pick<Work, 'app'>): Promise<string[]> {
  return neededSources(await storedEcosystems(app.db))
}

export async function beginSource(call: Pick<Work, 'app'>, facts: records.SourceFacts): Promise<RunName> {
  const problems: FieldViolation[] = []
  const say = (field: string, description: string) => problems.push({ field: `source.${field}`, description })
  if (!/^[\x21-\x7e]{1,128}$/.test(facts.name)) say('name', 'must be 1 to 128 characters without spaces')
  const url = URL.parse(facts.url)
  if (!url || !/^(?:https?|file|oci):$/.test(url.protocol) || facts.url.length > 2048)
    say('url', 'must be an http, https, file or oci URL of at most 2048 characters')
  else if (url.username !== '' || url.password !== '') say('url', 'must not have a user or a password')
  if (!/^[\x20-\x7e]{1,128}$/.test(facts.licence)) say('licence', 'must be 1 to 128 characters')
  if (facts.ecosystems.length > 1000) say('ecosystems', 'must have at most 1000 entries')
  if (facts.ecosystems.some((one) => !/^[^\p{Cc}]{1,128}$/u.test(one)))
    say('ecosystems', 'must have entries of 1 to 128 characters')
  refuseIfAny(problems)
  return records.beginSource(call, facts)
}

/** Finds the present run of a data source. Throws INVALID_ARGUMENT if a later run has begun. */
async function requireRun(call: Pick<Work, 'app'>, { name, generation }: RunName): Promise<records.SourceRun> {
  const source = await stored.findSource(call.app.db, name)
  if (source?.generation !== generation)
    throw invalid({ field: 'run', description: 'is not the current run: the data source was started again' })
  return { sourceNo: source.sourceNo, name, generation }
}

export async function putRecords(
  call: Pick<Work, 'app'>,
  run: RunName,
  given: readonly records.SourceRecord[],
): Promise<records.PutCounts> {
  if (given.length > maxRecords)
    throw invalid({ field: 'records', description: `must have at most ${maxRecords} records` })
  const ids = new Set<string>()
  refuseIfAny(
    given.flatMap((one, i) => {
      const problems = problemsOf(one)
      if (ids.has(one.id)) problems.push({ field: 'id', description: 'is given twice' })
      ids.add(one.id)
      return problems.map(({ field, description }) => ({ field: `records[${i}].${field}`, description }))
    }),
  )
  return records.putRecords(call, await requireRun(call, run), given)
}

export async function putRanks(
  call: Pick<Work, 'app'>,
  run: RunName,
  given: readonly records.Rank[],
): Promise<records.PutCounts> {
  if (given.length > maxRanks) throw invalid({ field: 'ranks', description: `must have at most ${maxRanks} ranks` })
  return ranks.putRanks(call, await requireRun(call, run), given)
}

export async function finishSource(
  call: Pick<Work, 'app' | 'log'>,
  run: RunName,
  end: records.SourceEnd,
): Promise<{ withdrawn: number }> {
  if (end.fingerprint.length > maxFingerprint) {
    throw invalid({ field: 'fingerprint', description: `must be at most ${maxFingerprint} characters long` })
  }
  return endSource(call, await requireRun(call, run), end)
}

/** Ends a run of a data source with records, or with exploitation data. */
async function endSource(
  work: Pick<Work, 'app' | 'log'>,
  run: records.SourceRun,
  end: records.SourceEnd,
): Promise<{ withdrawn: number }> {
  const gone = end.complete && end.error === '' ? await ranks.endRanks(work, run) : 0
  const { withdrawn } = await records.finishSource(work, run, end)
  return { withdrawn: withdrawn + gone }
}

const scores: readonly string[] = ['CVSS_V2', 'CVSS_V3', 'CVSS_V4']
const rangeTypes: readonly string[] = ['ECOSYSTEM', 'SEMVER']

/** Problems of a record. Its size is not checked here, but when the record is stored. */
function problemsOf(record: records.SourceRecord): FieldViolation[] {
  const problems: FieldViolation[] = []
  const say = (field: string, description: string) => problems.push({ field, description })
  const plain = [record.id, ...record.aliases, ...record.upstream]
  if (!plain.every((one) => /^[\x21-\x7e]+$/.test(one)))
    say('id', 'must be visible ASCII characters without spaces, and so must all aliases')
  if (record.summary.includes('\0')) say('summary', 'must not have a NUL character')
  if (!record.references.every((one) => /^https?:\/\/[^\s\0]+$/.test(one) && one.length <= 2048)) {
    say('references', 'must be http or https URLs of at most 2048 characters')
  }
  for (const [i, { type, vector, score, source }] of record.severities.entries()) {
    if (!scores.includes(type)) say(`severities[${i}].type`, `must be one of: ${scores.join(', ')}`)
    if (!/^[\x20-\x7e]{0,512}$/.test(vector)) say(`severities[${i}].vector`, 'must be at most 512 characters')
    if (!/^[\x20-\x7e]{0,128}$/.test(source)) say(`severities[${i}].source`, 'must be at most 128 characters')
    if (score !== undefined && !(score >= 0 && score <= 10)) say(`severities[${i}].score`, 'must be from 0 to 10')
  }
  if (record.severities.length > 1000) say('severities', 'must have at most 1000 entries')
  for (const [i, one] of record.affected.entries()) {
    const path = `affected[${i}]`
    if (one.ecosystem === '' || one.ecosystem.includes('\0')) say(`${path}.ecosystem`, 'is required')
    if (one.name === '' || one.name.includes('\0')) say(`${path}.name`, 'is required')
    if (!Object.hasOwn(affectedStates, one.state))
      say(`${path}.state`, `must be one of: ${Object.keys(affectedStates).join(', ')}`)
    if (one.severity !== '' && !Object.hasOwn(severityLevels, one.severity)) {
      say(`${path}.severity`, `must be one of: ${Object.keys(severityLevels).join(', ')}`)
    }
    if (!one.ranges.every(({ type }) => rangeTypes.includes(type)))
      say(`${path}.ranges`, 'must have the type ECOSYSTEM or SEMVER')
    const texts = [
      ...one.versions,
      ...one.ranges.flatMap(({ events }) => events.flatMap((event) => Object.values(event))),
    ]
    if (!texts.every((text) => /^[^\p{Cc}]{1,256}$/u.test(text as string))) {
      say(`${path}.versions`, 'must have entries of 1 to 256 characters, and so must ranges')
    }
  }
  return problems
}
