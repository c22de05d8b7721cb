// Present and former findings in the packages of one list.

import { type AffectedRow, mostOwn } from '../findings/findings.model.ts'
import type { Component } from '../lists/lists.model.ts'
import type { RecordSeverity } from '../records/records.model.ts'

/** A finding in one list, with the advisory data that caused the finding. `goneTime` is empty while the finding is open. */
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
  /** Distribution package that owns the files of the finding's package, or 0 if there is none. */
  ownerNo: number
  /** Time ranges in which the finding was suppressed, because the distribution stated that the owning package is not affected. */
  suppressed: Suppressed[]
  /** Accepted risks of the finding, with one array for each requested repository. */
  accepted: readonly (readonly Accepted[])[]
}

export type PastText = { untilTime: string; summary: string; references: string[] }

/** Returns the texts that the finding's record had at a time. */
export const textAt = ({ record }: Known, time: string): Pick<PastText, 'summary' | 'references'> =>
  record.past.find(({ untilTime }) => untilTime > time) ?? record

/**
 * An accepted risk of a vulnerability, with its time range. A trusted signer's statement that the image is not affected has the
 * same effect.
 */
export type Accepted = {
  vulnerability: string
  /** The uid of the accepted risk, or the uid of the signer. The other field is empty. */
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

/**
 * True if, at this time, one package had the maximum number of stored findings from an organization's own advisories. The package
 * can have more findings that are not stored.
 */
export function isOwnFullAt(known: readonly Known[], time: string): boolean {
  const totals = new Map<string, number>()
  for (const { affected, component, foundTime, goneTime } of known) {
    if (affected.organization === '' || foundTime > time || (goneTime !== '' && goneTime <= time)) continue
    const key = `${component.componentNo} ${affected.organization}`
    const total = (totals.get(key) ?? 0) + 1
    if (total >= mostOwn) return true
    totals.set(key, total)
  }
  return false
}

/**
 * Vulnerabilities of the finding at a time, without those whose risk was accepted in all of the repositories. Empty if the
 * finding was closed or suppressed.
 */
export function countedAt(known: Known, time: string): readonly string[] {
  if (!heldAt(known, time)) return []
  const ids = known.record.vulnerabilities
  if (known.accepted.length === 0) return ids
  return ids.filter((id) => !known.accepted.every((each) => each.some((one) => isAcceptedAt(one, id, time))))
}

/** True if the acceptance applied to a vulnerability at a time. */
export const isAcceptedAt = (one: Accepted, id: string, time: string): boolean =>
  one.vulnerability === id && one.fromTime <= time && one.untilTime > time

/** Times at which the finding changed: opened, closed, suppressed, accepted or with another text. */
export const turnsOf = ({ foundTime, goneTime, suppressed, accepted, record }: Known): string[] => [
  foundTime,
  goneTime,
  ...record.past.flatMap(({ untilTime }) => {
    return untilTime > foundTime && (goneTime === '' || untilTime < goneTime) ? [untilTime] : []
  }),
  ...[...suppressed, ...accepted.flat()].flatMap(({ fromTime, untilTime }) => [fromTime, untilTime]),
]
