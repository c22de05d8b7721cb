// Reads one data source and stores its data. If the source fails, the earlier data stays, and the reason of the failure is
// stored.
import type { PutCounts, Rank, SourceEnd, SourceRecord } from '#domains/scanning/records/records.model.ts'
import { OutgoingError } from '#lib/net/outgoing.ts'
import type { Fetched, Read } from './fetch.ts'
import { WrongRecord } from './values.ts'

/**
 * Record that was left out: its position, the invalid field and the problem. The field is empty if the whole record is invalid.
 */
export type Refused = { at: string; field: string; problem: string }

/** Destination for the records of one run. Throws WrongRecord if no record of the run can be stored. */
export type RecordSink = {
  /** Stores records. Leaves out invalid records, and reports them to `onRefused`. */
  put(records: readonly SourceRecord[], onRefused: (one: Refused) => void): Promise<PutCounts>
  putRanks(ranks: readonly Rank[], onRefused: (one: Refused) => void): Promise<PutCounts>
  finish(end: SourceEnd): Promise<{ withdrawn: number }>
}

export type Synced = { error: string; refused: Refused[]; withdrawn: number; counts: PutCounts }

const atOnce = 500
const members = ['created', 'updated', 'unchanged'] as const
const mostProblems = 10_000

/**
 * Reads a data source and stores its records in a sink. If the source fails, stores the error and does not throw. Other errors of
 * the sink are thrown.
 */
export async function syncSource(
  fetch: () => Promise<Fetched>,
  sink: RecordSink,
  { onProgress = () => {}, signal }: { onProgress?: (records: number) => void; signal?: AbortSignal } = {},
): Promise<Synced> {
  const counts: PutCounts = { created: 0, updated: 0, unchanged: 0 }
  const refused: Refused[] = []
  const finish = async (end: SourceEnd): Promise<Synced> => {
    const { withdrawn } = await sink.finish(end)
    return { error: end.error, refused, withdrawn, counts }
  }
  try {
    const fetched = await withSourceFailed(fetch)
    let done = 0
    for await (const some of batched(fetched.records, atOnce)) {
      signal?.throwIfAborted()
      if (refused.length > mostProblems) throw new WrongRecord(`more than ${mostProblems} records are invalid`)
      for (const one of some) if ('problem' in one) refused.push({ ...one, field: '' })
      const records = some.flatMap((one) => ('record' in one ? [one.record] : []))
      const ranks = some.flatMap((one) => ('rank' in one ? [one.rank] : []))
      const onRefused = (one: Refused) => refused.push(one)
      const puts = [
        ...(records.length > 0 ? [await sink.put(records, onRefused)] : []),
        ...(ranks.length > 0 ? [await sink.putRanks(ranks, onRefused)] : []),
      ]
      for (const put of puts) for (const member of members) counts[member] += put[member]
      done += some.length
      onProgress(done)
    }
    // If records were left out, the run is not complete. Otherwise the invalid records would be withdrawn.
    const wrong = refused.length
    if (wrong > 0) return await finish(toFailedEnd(`${wrong} ${wrong === 1 ? 'record is' : 'records are'} invalid`))
    const { fingerprint, buildTime } = fetched.end()
    return await finish({ fingerprint, buildTime, complete: fetched.complete, error: '' })
  } catch (error) {
    // If the run was aborted, the source has not failed.
    signal?.throwIfAborted()
    const reason = reasonOf(error)
    if (reason === undefined) throw error
    return await finish(toFailedEnd(reason)).catch((late: unknown) => {
      if (!(late instanceof WrongRecord)) throw late
      return { error: late.message, refused, withdrawn: 0, counts }
    })
  }
}

const toFailedEnd = (error: string): SourceEnd => ({ fingerprint: '', buildTime: '', complete: false, error })

/** Unexpected error while a source is read, such as a full disk. */
class SourceFailed extends Error {}

async function withSourceFailed<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw reasonOf(error) === undefined ? new SourceFailed('unexpected', { cause: error }) : error
  }
}

/** Reason why a source failed. Undefined if the source did not cause the error. Contains no content of the source. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof OutgoingError)
    return error.status === undefined ? error.message : `the server responded with HTTP ${error.status}`
  if (error instanceof WrongRecord) return error.message
  if (!(error instanceof SourceFailed)) return undefined
  const { code, name } = error.cause as NodeJS.ErrnoException
  return `downloading or reading the data failed: ${typeof code === 'string' ? code : name}`
}

async function* batched(reads: AsyncIterable<Read>, most: number): AsyncGenerator<Read[]> {
  const from = reads[Symbol.asyncIterator]()
  let some: Read[] = []
  try {
    for (
      let one = await withSourceFailed(() => from.next());
      one.done !== true;
      one = await withSourceFailed(() => from.next())
    ) {
      some.push(one.value)
      if (some.length < most) continue
      yield some
      some = []
    }
    if (some.length > 0) yield some
  } finally {
    await from.return?.()
  }
}
