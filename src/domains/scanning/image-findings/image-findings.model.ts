// What is known of the packages of one list, found by found.

import { type AffectedRow, mostOwn } from '../findings/findings.model.ts'
import type { Component } from '../lists/lists.model.ts'
import type { RecordSeverity } from '../records/records.model.ts'

/** One finding in one list, with all that it follows from. `goneTime` is empty while it holds. */
export type Known = {
  findingNo: number
  state: number
  severity: number
  foundTime: string
  goneTime: string
  component: Component & { componentNo: number }
  affected: AffectedRow
  record: {
    id: string
    aliases: string[]
    upstream: string[]
    summary: string
    severities: RecordSeverity[]
    references: string[]
    publishTime: string
    /** Those that it is about, as `vulnerabilityIds` has them. */
    vulnerabilities: readonly string[]
    /** The texts of before, the oldest first. */
    past: readonly PastText[]
  }
  source: string
  locations: string[]
  /** The component of the distribution that the files belong to; 0 when there is none. */
  ownerNo: number
  /** When it did not count, and why: what the distribution says of the package that the files belong to. */
  suppressed: Suppressed[]
  /** What was accepted of it, for each repo that is asked about. */
  accepted: readonly (readonly Accepted[])[]
}

export type PastText = { untilTime: string; summary: string; references: string[] }

/** The texts that a record had at a moment. */
export const textAt = ({ record }: Known, time: string): Pick<PastText, 'summary' | 'references'> =>
  record.past.find(({ untilTime }) => untilTime > time) ?? record

/** That the risk of a vulnerability was accepted, or a signer who is trusted says there is none, until it ended. */
export type Accepted = {
  vulnerability: string
  /** The acceptance, or the signer; the other is empty. */
  uid: string
  signer: string
  reason: string
  actor: string
  expireTime: string
  fromTime: string
  untilTime: string
}

/** `untilTime` is empty while it holds. */
export type Suppressed = {
  fromTime: string
  untilTime: string
  source: string
  record: string
  owner: Pick<Component, 'kind' | 'name' | 'version' | 'arch' | 'origin' | 'originVersion' | 'ecosystem'>
}

/** Whether it held at a moment, and counted. */
export const heldAt = ({ foundTime, goneTime, suppressed }: Known, time: string): boolean =>
  foundTime <= time && (goneTime === '' || goneTime > time) && !suppressed.some((one) => isSuppressedAt(one, time))

const isSuppressedAt = ({ fromTime, untilTime }: Suppressed, time: string): boolean =>
  fromTime <= time && (untilTime === '' || untilTime > time)

/** Whether there were as many findings of an organisation's own in one package at a moment as are kept: there may be more. */
export function isOwnFullAt(known: readonly Known[], time: string): boolean {
  const totals = new Map<string, number>()
  for (const { affected, component, foundTime, goneTime } of known) {
    if (affected.place === '' || foundTime > time || (goneTime !== '' && goneTime <= time)) continue
    const key = `${component.componentNo} ${affected.place}`
    const total = (totals.get(key) ?? 0) + 1
    if (total >= mostOwn) return true
    totals.set(key, total)
  }
  return false
}

/** The vulnerabilities that it counted for at a moment: those whose risk was not accepted in all of the repos. */
export function countedAt(known: Known, time: string): readonly string[] {
  if (!heldAt(known, time)) return []
  const ids = known.record.vulnerabilities
  if (known.accepted.length === 0) return ids
  return ids.filter((id) => !known.accepted.every((each) => each.some((one) => isAcceptedAt(one, id, time))))
}

/** Whether it says so of a vulnerability at a moment. */
export const isAcceptedAt = (one: Accepted, id: string, time: string): boolean =>
  one.vulnerability === id && one.fromTime <= time && one.untilTime > time

/** All moments at which it began or ended to count, or was told in other words. */
export const turnsOf = ({ foundTime, goneTime, suppressed, accepted, record }: Known): string[] => [
  foundTime,
  goneTime,
  ...record.past.flatMap(({ untilTime }) => {
    return untilTime > foundTime && (goneTime === '' || untilTime < goneTime) ? [untilTime] : []
  }),
  ...[...suppressed, ...accepted.flat()].flatMap(({ fromTime, untilTime }) => [fromTime, untilTime]),
]
