// Sends the records of an import to the server in batches that commit whole, and says what became of them.
import type { Body } from './api-client.ts'
import { ApiError } from './api-client.ts'
import { exitCodes, type Options, type Terminal } from './command.ts'
import type { OperatorApi } from './operator.ts'
import { plain } from './plain-text.ts'
import { progressOf } from './progress.ts'

/** Something that cannot be taken in, and where it stands. `field` is a path in the record; empty for all of it. */
export type Problem = { file: string; line: number; field: string; description: string }

/** A record as the server takes it. `id` is what no other may have; `lineOf` finds a field of it in its file. */
export type ImportRecord = { id: string; file: string; body: object; lineOf: (field: string) => number }

export type Import = {
  /** What the records are called. */
  what: string
  path: string
  /** The request for some records. */
  request: (bodies: readonly object[]) => object
  /** The field of the request that holds the records, such as `advisories`. */
  member: string
}

const batchRecords = 250
const batchBytes = 1024 * 1024
const maxShown = 20

type Counts = { created: number; updated: number; unchanged: number }

/** Sends everything that is fine, then says what was not. Answers with the exit code. */
export async function sendRecords(
  terminal: Terminal,
  options: Options,
  api: OperatorApi,
  rules: Import,
  { records, problems }: { records: readonly ImportRecord[]; problems: readonly Problem[] },
): Promise<number> {
  const { unique, repeated } = withoutRepeats(records)
  const refused = [...problems, ...repeated]
  const total: Counts = { created: 0, updated: 0, unchanged: 0 }
  {
    using bar = progressOf(terminal, rules.what, unique.length)
    let done = 0
    bar.at(done)
    for (const batch of batchesOf(unique)) {
      const { counts, wrong } = await sendBatch(api, rules, batch)
      refused.push(...wrong)
      for (const key of ['created', 'updated', 'unchanged'] as const) total[key] += counts[key]
      done += batch.length
      bar.at(done)
    }
  }
  report(terminal, options, rules, total, refused)
  return refused.length > 0 ? exitCodes.failed : exitCodes.ok
}

/** What the server refuses is left out, and the rest is sent again: a batch is taken in whole or not at all. */
async function sendBatch(
  api: OperatorApi,
  rules: Import,
  batch: readonly ImportRecord[],
): Promise<{ counts: Counts; wrong: Problem[] }> {
  const wrong: Problem[] = []
  let left = batch
  while (left.length > 0) {
    try {
      const answer = await api.post(rules.path, rules.request(left.map(({ body }) => body)))
      return { counts: countsOf(answer), wrong }
    } catch (error) {
      const found = error instanceof ApiError ? problemsOf(rules.member, left, error) : []
      if (found.length === 0) throw error
      wrong.push(...found.map(({ problem }) => problem))
      const bad = new Set(found.map(({ index }) => index))
      left = left.filter((_, index) => !bad.has(index))
    }
  }
  return { counts: { created: 0, updated: 0, unchanged: 0 }, wrong }
}

/** The server names a record by its place in the request. */
function problemsOf(member: string, batch: readonly ImportRecord[], { violations }: ApiError) {
  return violations.flatMap(({ field, description }) => {
    const [, place, rest = ''] = new RegExp(`^${member}\\[(\\d+)\\](?:\\.advisory)?(?:\\.(.*))?$`).exec(field) ?? []
    const record = place === undefined ? undefined : batch[Number(place)]
    if (!record) return []
    const problem: Problem = { file: record.file, line: record.lineOf(rest), field: rest, description }
    return [{ index: Number(place), problem }]
  })
}

function countsOf(answer: Body): Counts {
  const { created, updated, unchanged } = answer
  return { created: Number(created ?? 0), updated: Number(updated ?? 0), unchanged: Number(unchanged ?? 0) }
}

function withoutRepeats(records: readonly ImportRecord[]): { unique: ImportRecord[]; repeated: Problem[] } {
  const first = new Map<string, ImportRecord>()
  const repeated: Problem[] = []
  for (const record of records) {
    const before = first.get(record.id)
    if (!before) first.set(record.id, record)
    else {
      const description = `${record.id} stands at ${before.file}:${before.lineOf('')} already`
      repeated.push({ file: record.file, line: record.lineOf(''), field: 'id', description })
    }
  }
  return { unique: [...first.values()], repeated }
}

function* batchesOf(records: readonly ImportRecord[]): Generator<ImportRecord[]> {
  let batch: ImportRecord[] = []
  let bytes = 0
  for (const record of records) {
    const size = JSON.stringify(record.body).length
    if (batch.length > 0 && (batch.length === batchRecords || bytes + size > batchBytes)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(record)
    bytes += size
  }
  if (batch.length > 0) yield batch
}

function report(
  terminal: Terminal,
  { output }: Options,
  { what }: Import,
  counts: Counts,
  refused: readonly Problem[],
): void {
  for (const { file, line, field, description } of refused.slice(0, maxShown)) {
    terminal.say(`pinfold: ${plain(`${file}:${line}: ${field === '' ? '' : `${field}: `}${description}`)}`)
  }
  if (refused.length > maxShown) terminal.say(`pinfold: and ${refused.length - maxShown} more like these`)
  if (output === 'json') terminal.print(JSON.stringify({ ...counts, refused: refused.length }))
  else {
    const sum = counts.created + counts.updated + counts.unchanged
    const told = `${counts.created} new, ${counts.updated} changed, ${counts.unchanged} as before`
    terminal.print(`${sum} ${what}: ${told}${refused.length > 0 ? `; ${refused.length} problems, see above` : ''}`)
  }
}
