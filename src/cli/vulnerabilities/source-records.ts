import type { Import, ImportRecord } from '../imports/import-batches.ts'

/** As the sources make it; the words of it are the API's. */
type Given = {
  id: string
  publishTime: string
  modifyTime: string
  withdrawTime: string
  affected: readonly { qualifiers: object }[]
}

/** How records of one reading are sent. */
export function recordRules(run: unknown): Import {
  return {
    what: 'records',
    path: '/control/v1/vulnerabilitySources:put',
    request: (records: readonly object[]) => ({ run, records }),
    member: 'records',
  }
}

/** A record as the API takes it. */
export function toRecord<R extends Given>(record: R, file: string): ImportRecord {
  const { publishTime, modifyTime, withdrawTime, affected, ...rest } = record
  const body = {
    ...rest,
    ...(publishTime === '' ? {} : { publishTime }),
    ...(modifyTime === '' ? {} : { modifyTime }),
    ...(withdrawTime === '' ? {} : { withdrawTime }),
    affected: affected.map(({ qualifiers, ...one }) => ({ ...one, ...qualifiers })),
  }
  return { id: record.id, file: `${file}/${record.id}`, body, lineOf: () => 0 }
}

/** How ranks of one reading are sent. */
export function rankRules(run: unknown): Import {
  return {
    what: 'ranks',
    path: '/control/v1/vulnerabilitySources:putRanks',
    request: (ranks: readonly object[]) => ({ run, ranks }),
    member: 'ranks',
  }
}

/** A rank as the API takes it. */
export function toRank(rank: { cve: string }, file: string): ImportRecord {
  return { id: rank.cve, file: `${file}/${rank.cve}`, body: rank, lineOf: () => 0 }
}
