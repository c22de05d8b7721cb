// Adds scan reports of other scanners to the queue of reports to be parsed.
import type { By } from '#caller.ts'
import { isEnvelopeType } from '#contents/reports/envelope.ts'
import { isVexType } from '#contents/reports/vex-statement.ts'
import type { Tx } from '#db/sql.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { bytesOfSigned, giveBack } from '#domains/registry/blobs/usage.service.ts'
import { mostAttestations, mostWaiting, type NewReport, reportTypes } from './scan-reports.model.ts'
import * as store from './scan-reports.store.ts'
import * as signed from './signed-statements.store.ts'

const mayReport = [capabilityNumber('vuln_report.create')]

/** Manifest that refers to an image, with the fields that show if the manifest is a scan report. */
export type Referring = {
  digest: string
  artifactType: string
  annotations: Readonly<Record<string, string>>
  subject: string
  layers: readonly { mediaType: string; digest: string; annotations: Readonly<Record<string, unknown>> }[]
}

/** True if the manifest can be a scan report or a VEX document on its subject. */
export function mayBeReport({ artifactType, annotations, subject }: Omit<Referring, 'digest' | 'layers'>): boolean {
  if (subject === '') return false
  const predicate = annotations['in-toto.io/predicate-type'] ?? annotations['dev.sigstore.bundle.predicateType']
  if (artifactType === 'application/vnd.in-toto+json') return isScan(predicate ?? '')
  // Some tools state the predicate type only inside the envelope.
  if (isEnvelopeType(artifactType)) return predicate === undefined || isScan(predicate)
  return reportTypes.includes(artifactType)
}
const isScan = (predicate: string): boolean =>
  isVexType(predicate) ||
  /^https:\/\/(?:cosign\.sigstore\.dev\/attestation\/vuln|in-toto\.io\/attestation\/vulns)\b/.test(predicate)

/** Queues the attestations in a manifest that a cosign tag points to. Skips attestations that were queued before. */
export async function queueAttestations(
  tx: Tx,
  by: By,
  repo: NewReport['repo'],
  pushed: Pick<Referring, 'digest' | 'subject' | 'layers'>,
): Promise<void> {
  const attestations = pushed.layers.filter(({ mediaType, annotations: { predicateType } }) => {
    return isEnvelopeType(mediaType) && (typeof predicateType !== 'string' || isScan(predicateType))
  })
  for (const { digest: rawDigest } of attestations.slice(-mostAttestations)) {
    const about = { repo, digest: pushed.subject, origin: 'attestation' as const, referrer: pushed.digest }
    const one: NewReport = { ...about, rawDigest, actor: by.caller.uid }
    // Tools that add an attestation push all earlier attestations again.
    if (!(await store.isPushed(tx, one))) await queueOne(tx, by, one)
  }
}

/**
 * Queues a pushed report in the transaction of the push. If the caller has no permission to create scan reports, stores the
 * report as ignored. A later push by a caller with that permission queues the report.
 */
export async function queuePushed(tx: Tx, by: By, repo: NewReport['repo'], pushed: Referring): Promise<void> {
  const types = [...reportTypes, 'application/vnd.in-toto+json']
  const isMeant = (type: string) => types.includes(type) || isEnvelopeType(type)
  const layer = pushed.layers.find(({ mediaType }) => isMeant(mediaType)) ?? pushed.layers[0]
  if (!layer) return
  await queueOne(tx, by, {
    ...{ repo, digest: pushed.subject, origin: 'referrer' as const, referrer: pushed.digest },
    ...{ rawDigest: layer.digest, actor: by.caller.uid },
  })
}

async function queueOne(tx: Tx, by: By, one: NewReport): Promise<void> {
  const { repo, digest } = one
  const refused = await refusal(tx, by, one)
  if (!refused && (await store.reviveReport(tx, one, by.cause.now))) return
  const id = await store.insertReport(tx, one, refused, by.cause.now)
  if (id !== undefined && refused) await giveBack(tx, repo.uid, await store.pruneReports(tx, repo.id, digest))
}

async function refusal(tx: Tx, { caller }: By, { repo }: NewReport) {
  if (!caller.rights.holds(repo.uid, mayReport)) {
    return {
      reason: 'NOT_ALLOWED',
      message: 'the user or identity that pushed the report does not have the capability vuln_report.create',
    }
  }
  const organization = repo.uid.slice(0, 40)
  if ((await store.countWaiting(tx, organization, mostWaiting)) < mostWaiting) return undefined
  return { reason: 'TOO_MANY', message: `the organization already has ${mostWaiting} reports in the queue` }
}

/** Deletes at most `limit` reports and signed statements of a deleted repository. Returns the number of deleted rows. */
export async function forgetReports(tx: Tx, { id, uid }: NewReport['repo'], limit: number): Promise<number> {
  const { count, bytes } = await store.deleteReportsOf(tx, id, limit)
  if (count > 0) await giveBack(tx, uid, bytes)
  if (count >= limit) return count
  const others = await signed.deleteSignedOf(tx, uid, limit - count)
  if (others > 0) await giveBack(tx, uid, others * bytesOfSigned)
  return count + others
}

/** Deletes the reports and signed statements of a deleted image. */
export async function forgetReportsOf(tx: Tx, { id, uid }: NewReport['repo'], digest: string): Promise<void> {
  await giveBack(tx, uid, await store.deleteReportsOfImage(tx, id, digest))
  await giveBack(tx, uid, (await signed.deleteSignedOfImage(tx, uid, digest)) * bytesOfSigned)
}
