// Import of records in batches. The server stores each batch as a whole or not at all.
import { chunksByBytes } from '#lib/chunks.ts'
import { jsonText, plain } from '#lib/terminal/plain-text.ts'
import type { Body } from '../framework/api-client.ts'
import { ApiError } from '../framework/api-client.ts'
import { exitCodes } from '../framework/cli-error.ts'
import type { Options, Terminal } from '../framework/command.ts'
import type { OperatorApi } from '../framework/operator.ts'
import { progressOf } from '../framework/progress.ts'

/** Problem of a record, with its position in a file. `field` is a path in the record, and empty if the whole record is wrong. */
export type Problem = { file: string; line: number; field: string; description: string }

/** Record in the form of the API. `id` is unique. `lineOf` returns the line of a field in the file. */
export type ImportRecord = { id: string; file: string; body: object; lineOf: (field: string) => number }

/** Records of files, and problems of the invalid ones. */
export type Records = { records: ImportRecord[]; problems: Problem[] }

export type Import = {
  /** Plural noun for the records in messages. */
  what: string
  path: string
  /** Builds the request for a batch of records. */
  request: (bodies: readonly object[]) => object
  /** Field of the request that contains the records, such as `advisories`. */
  member: string
  /** Additional counters in the server's answer, by member, with labels for the summary. */
  counts?: Readonly<Record<string, string>>
}

/** Result of all records that were sent so far. */
export type Outcome = { counts: Record<string, number>; refused: Problem[] }

const batchRecords = 250
const batchBytes = 1024 * 1024
const maxRecordBytes = 3 * 1024 * 1024
const maxShown = 20

/** Sends all valid records, then reports the problems. Returns the exit code. */
export async function sendRecords(
  terminal: Terminal,
  options: Options,
  api: OperatorApi,
  rules: Import,
  { records, problems }: Records,
): Promise<number> {
  const { unique, repeated } = withoutRepeats(records)
  const outcome: Outcome = { counts: {}, refused: [...problems, ...repeated] }
  {
    using bar = progressOf(terminal, rules.what, unique.length)
    let done = 0
    bar.at(done)
    await sendSome(api, rules, unique, outcome, (sent) => {
      done += sent
      bar.at(done)
    })
  }
  return report(terminal, options, rules, outcome)
}

/** Sends records in batches, and adds the results to `outcome`. */
export async function sendSome(
  api: OperatorApi,
  rules: Import,
  records: readonly ImportRecord[],
  outcome: Outcome,
  onSent: (sent: number) => void = () => {},
): Promise<void> {
  const fits = (record: ImportRecord) => JSON.stringify(record.body).length <= maxRecordBytes
  for (const { file, lineOf } of records.filter((record) => !fits(record))) {
    outcome.refused.push({
      file,
      line: lineOf(''),
      field: '',
      description: `is larger than ${maxRecordBytes} bytes, the limit of one record`,
    })
  }
  for (const batch of batchesOf(records.filter(fits))) {
    const { counts, wrong } = await sendBatch(api, rules, batch)
    outcome.refused.push(...wrong)
    for (const [key, count] of Object.entries(counts)) outcome.counts[key] = (outcome.counts[key] ?? 0) + count
    onSent(batch.length)
  }
}

/**
 * Sends a batch, which the server stores as a whole or not at all. If the server refuses some records, sends the batch again
 * without them.
 */
async function sendBatch(
  api: OperatorApi,
  rules: Import,
  batch: readonly ImportRecord[],
): Promise<{ counts: Record<string, number>; wrong: Problem[] }> {
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
  return { counts: {}, wrong }
}

/** In an error, the server identifies a record by its position in the request. */
function problemsOf(member: string, batch: readonly ImportRecord[], { violations }: ApiError) {
  return violations.flatMap(({ field, description }) => {
    const [, position, rest = ''] = new RegExp(`^${member}\\[(\\d+)\\](?:\\.advisory)?(?:\\.(.*))?$`).exec(field) ?? []
    const record = position === undefined ? undefined : batch[Number(position)]
    if (!record) return []
    const problem: Problem = { file: record.file, line: record.lineOf(rest), field: rest, description }
    return [{ index: Number(position), problem }]
  })
}

function countsOf(answer: Body): Record<string, number> {
  return Object.fromEntries(Object.entries(answer).map(([key, count]) => [key, Number(count)]))
}

function withoutRepeats(records: readonly ImportRecord[]): { unique: ImportRecord[]; repeated: Problem[] } {
  const first = new Map<string, ImportRecord>()
  const repeated: Problem[] = []
  for (const record of records) {
    const before = first.get(record.id)
    if (!before) first.set(record.id, record)
    else {
      const description = `${record.id} is a duplicate of ${before.file}:${before.lineOf('')}`
      repeated.push({ file: record.file, line: record.lineOf(''), field: 'id', description })
    }
  }
  return { unique: [...first.values()], repeated }
}

function batchesOf(records: readonly ImportRecord[]): Iterable<ImportRecord[]> {
  const most = { items: batchRecords, bytes: batchBytes }
  return chunksByBytes(records, most, ({ body }) => JSON.stringify(body).length)
}

/** Prints one line for each of the first problems, and the number of the others. */
export function printProblems(terminal: Terminal, refused: readonly Problem[]): void {
  for (const { file, line, field, description } of refused.slice(0, maxShown)) {
    const location = line === 0 ? file : `${file}:${line}`
    terminal.say(`pinfold: ${plain(`${location}: ${field === '' ? '' : `${field}: `}${description}`)}`)
  }
  if (refused.length > maxShown) terminal.say(`pinfold: and ${refused.length - maxShown} more problems`)
}

/** Prints the problems and the number of imported records. Returns the exit code. */
export function report(
  terminal: Terminal,
  { output }: Options,
  { what, counts: more = {} }: Import,
  { counts, refused }: Outcome,
): number {
  printProblems(terminal, refused)
  const { created = 0, updated = 0, unchanged = 0 } = counts
  const others = Object.keys(more).map((key) => [key, counts[key] ?? 0] as const)
  if (output === 'json') {
    const all = { created, updated, unchanged, ...Object.fromEntries(others), refused: refused.length }
    terminal.print(jsonText(all))
  } else {
    const told = [`${created} new`, `${updated} changed`, `${unchanged} unchanged`]
    const also = others.map(([key, count]) => `, ${count} ${more[key]}`)
    const sum = created + updated + unchanged
    terminal.print(
      `${sum} ${what}: ${told.join(', ')}${also.join('')}${refused.length > 0 ? `; ${refused.length} problems, see above` : ''}`,
    )
  }
  return refused.length > 0 ? exitCodes.failed : exitCodes.ok
}
