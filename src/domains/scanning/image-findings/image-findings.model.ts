// Findings in the packages of one list, over time.

import { type AffectedRow, mostOwn } from '../findings/findings.model.ts'
import type { Component } from '../lists/lists.model.ts'
import type { RecordSeverity } from '../records/records.model.ts'

/** A finding in one list, with all that it is derived from. `goneTime` is empty while the finding is open. */
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
    /** Vulnerabilities that the record is about, from `vulnerabilityIds`. */
    vulnerabilities: readonly string[]
    /** Former texts, the oldest first. */
    past: readonly PastText[]
  }
  source: string
  locations: string[]
  /** Package of the distribution that the files belong to, or 0 if there is none. */
  ownerNo: number
  /** Times at which the finding was suppressed by data of the distribution on the owning package. */
  suppressed: Suppressed[]
  /** Accepted risks of the finding in each of the requested repositories. */
  accepted: readonly (readonly Accepted[])[]
}

export type PastText = { untilTime: string; summary: string; references: string[] }

/** Texts that a record had at a time. */
export const textAt = ({ record }: Known, time: string): Pick<PastText, 'summary' | 'references'> =>
  record.past.find(({ untilTime }) => untilTime > time) ?? record

/** Acceptance of the risk of a vulnerability, or a trusted signer's statement that there is none, with its time range. */
export type Accepted = {
  vulnerability: string
  /** The uid of the acceptance, or of the signer. The other one is empty. */
  uid: string
  signer: string
  reason: string
  actor: string
  expireTime: string
  fromTime: string
  untilTime: string
}

/** `untilTime` is empty while the suppression is in force. */
export type Suppressed = {
  fromTime: string
  untilTime: string
  source: string
  record: string
  owner: Pick<Component, 'kind' | 'name' | 'version' | 'arch' | 'origin' | 'originVersion' | 'ecosystem'>
}

/** True if the finding was open and not suppressed at a time. */
export const heldAt = ({ foundTime, goneTime, suppressed }: Known, time: string): boolean =>
  foundTime <= time && (goneTime === '' || goneTime > time) && !suppressed.some((one) => isSuppressedAt(one, time))

const isSuppressedAt = ({ fromTime, untilTime }: Suppressed, time: string): boolean =>
  fromTime <= time && (untilTime === '' || untilTime > time)

/** True if, at a time, one package had as many findings from an organization's own advisories as are stored. More can exist. */
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

/** Vulnerabilities for which the finding counted at a time: those that were not accepted in all of the repositories. */
export function countedAt(known: Known, time: string): readonly string[] {
  if (!heldAt(known, time)) return []
  const ids = known.record.vulnerabilities
  if (known.accepted.length === 0) return ids
  return ids.filter((id) => !known.accepted.every((each) => each.some((one) => isAcceptedAt(one, id, time))))
}

/** True if the acceptance was in force for a vulnerability at a time. */
export const isAcceptedAt = (one: Accepted, id: string, time: string): boolean =>
  one.vulnerability === id && one.fromTime <= time && one.untilTime > time

/** Times at which the finding began or ceased to count, or at which its text changed. */
export const turnsOf = ({ foundTime, goneTime, suppressed, accepted, record }: Known): string[] => [
  foundTime,
  goneTime,
  ...record.past.flatMap(({ untilTime }) => {
    return untilTime > foundTime && (goneTime === '' || untilTime < goneTime) ? [untilTime] : []
  }),
  ...[...suppressed, ...accepted.flat()].flatMap(({ fromTime, untilTime }) => [fromTime, untilTime]),
]
