// Reader of OSV records (https://ossf.github.io/osv-schema). Ignores members that the API's vulnerability metadata does not have.

import { readOsv as readRecord } from '#sources/osv.ts'
import { WrongRecord } from '#sources/values.ts'
import { type Json, listAt, objectAt, WrongValue } from '../framework/json-values.ts'
import { parseUserJson } from '../framework/user-files.ts'
import { toRecord } from '../vulnerabilities/vulnerabilities-sync.ts'
import type { ImportRecord, Problem } from './import-batches.ts'

/** For each record id, the times of the first and the last commit of its file in the source repository. */
export type CommitTimes = Record<string, { firstCommitTime?: string; lastCommitTime?: string } | undefined>

/** Types of scores that the API has. Scores of other types, such as those of a distribution, are left out. */
const scoreTypes = new Set(['CVSS_V2', 'CVSS_V3', 'CVSS_V4'])

/** Time that stands for a missing time in some OSV records. */
const placeholder = /^0001-01-01T00:00:00(?:\.0+)?Z$/

/** Result of a file: metadata of vulnerabilities, statements about packages, and the problems of invalid records. */
type OsvFile = { records: ImportRecord[]; known: ImportRecord[]; problems: Problem[] }

/** Reads a file. If `lines` is true, each line is a record. Otherwise, the whole file is one record. */
export function readOsv(file: string, text: string, lines: boolean, times: CommitTimes): OsvFile {
  const records: ImportRecord[] = []
  const known: ImportRecord[] = []
  const problems: Problem[] = []
  const texts = lines ? text.split('\n') : [text]
  for (const [i, one] of texts.entries()) {
    if (one.trim() === '') continue
    const line = i + 1
    try {
      const body = bodyOf(parse(one), times)
      known.push({ ...toRecord(readRecord(one), ''), file, lineOf: () => line })
      records.push({ id: body.id, file, body, lineOf: () => line })
    } catch (error) {
      if (!(error instanceof WrongValue) && !(error instanceof WrongRecord)) throw error
      const field = error instanceof WrongValue ? error.path : ''
      problems.push({ file, line, field, description: error.message })
    }
  }
  return { records, known, problems }
}

function parse(text: string): Json {
  try {
    return objectAt(parseUserJson(text), 'record')
  } catch (error) {
    if (error instanceof WrongValue) throw error
    throw new WrongValue('', 'is not valid JSON')
  }
}

function bodyOf(record: Json, times: CommitTimes) {
  const id = textOf(record.id, 'id')
  if (id === '') throw new WrongValue('id', 'is required')
  const affected = listOf(record.affected, 'affected').map((one, i) => objectAt(one, `affected[${i}]`))
  const known = Object.hasOwn(times, id) ? times[id] : undefined
  return {
    id,
    aliases: listOf(record.aliases, 'aliases').map((alias, i) => textOf(alias, `aliases[${i}]`)),
    summary: textOf(record.summary, 'summary'),
    details: textOf(record.details, 'details'),
    references: listOf(record.references, 'references').map((one, i) => referenceOf(one, `references[${i}]`)),
    severities: [
      ...scoresOf(record.severity, 'severity'),
      ...affected.flatMap((one, i) => scoresOf(one.severity, `affected[${i}].severity`)),
    ],
    ...timeOf('publishTime', textOf(record.published, 'published'), known?.firstCommitTime),
    ...timeOf('modifyTime', textOf(record.modified, 'modified'), known?.lastCommitTime),
  }
}

function timeOf(member: string, given: string, instead: string | undefined): Json {
  const time = given === '' || placeholder.test(given) ? instead : given
  return time === undefined ? {} : { [member]: time }
}

function referenceOf(value: unknown, path: string): Json {
  const { type, url } = objectAt(value, path)
  return { type: `TYPE_${textOf(type, `${path}.type`)}`, url: textOf(url, `${path}.url`) }
}

function scoresOf(value: unknown, path: string): Json[] {
  return listOf(value, path).flatMap((one, i) => {
    const { type, score } = objectAt(one, `${path}[${i}]`)
    if (!scoreTypes.has(textOf(type, `${path}[${i}].type`))) return []
    return [{ type: `TYPE_${type}`, score: textOf(score, `${path}[${i}].score`) }]
  })
}

/** Returns empty text for a missing value. */
function textOf(value: unknown, path: string): string {
  if (value === undefined) return ''
  if (typeof value !== 'string') throw new WrongValue(path, 'must be a string')
  return value
}

/** Returns an empty list for a missing value and for null, since OSV files have both. */
const listOf = (value: unknown, path: string): readonly unknown[] => listAt(value ?? [], path)
