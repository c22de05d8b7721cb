// Takes in reports of other scanners, to be read in the background.
import type { Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { giveBack } from '#domains/registry/blobs/usage.service.ts'
import { mostWaiting, type NewReport, reportTypes } from './scan-reports.model.ts'
import * as store from './scan-reports.store.ts'

const mayReport = [capabilityNumber('vuln_report.create')]

/** A manifest that refers to an image, as far as it may be a report. */
export type Referring = {
  digest: string
  artifactType: string
  annotations: Readonly<Record<string, string>>
  subject: string
  layers: readonly { mediaType: string; digest: string }[]
}

/** Whether it may be a report of what was found in the image that it refers to. */
export function mayBeReport({ artifactType, annotations, subject }: Omit<Referring, 'digest' | 'layers'>): boolean {
  if (subject === '') return false
  const predicate = annotations['in-toto.io/predicate-type'] ?? ''
  const isStated = artifactType === 'application/vnd.in-toto+json' && isScan.test(predicate)
  return isStated || reportTypes.includes(artifactType)
}
const isScan =
  /^https:\/\/(?:cosign\.sigstore\.dev\/attestation\/vuln|in-toto\.io\/attestation\/vulns|openvex\.dev\/ns)\b/

/**
 * Takes a pushed one in, in the transaction of the push. It counts only where whoever pushes may hand in reports; one that was
 * pushed by somebody else before counts once it is pushed by somebody who may.
 */
export async function queuePushed(tx: Tx, work: Work, repo: NewReport['repo'], pushed: Referring): Promise<void> {
  const { caller, cause } = work
  const types = [...reportTypes, 'application/vnd.in-toto+json']
  const layer = pushed.layers.find(({ mediaType }) => types.includes(mediaType)) ?? pushed.layers[0]
  if (!layer) return
  const one: NewReport = {
    ...{ repo, digest: pushed.subject, origin: 'referrer' as const, referrer: pushed.digest },
    ...{ rawDigest: layer.digest, actor: caller.uid },
  }
  const refused = await refusal(tx, work, one)
  if (!refused && (await store.reviveReport(tx, one, cause.now))) return
  const id = await store.insertReport(tx, one, refused, cause.now)
  if (id !== undefined && refused) await giveBack(tx, repo.uid, await store.pruneReports(tx, repo.id, pushed.subject))
}

async function refusal(tx: Tx, { caller }: Work, { repo }: NewReport) {
  if (!caller.rights.holds(repo.uid, mayReport)) {
    return { reason: 'NOT_ALLOWED', message: 'whoever pushed it does not hold vuln_report.create' }
  }
  const organization = repo.uid.slice(0, 40)
  if ((await store.countWaiting(tx, organization, mostWaiting)) < mostWaiting) return undefined
  return { reason: 'TOO_MANY', message: `${mostWaiting} reports of the organisation wait already` }
}

/** With their repo, before it is deleted. */
export async function forgetReports(tx: Tx, { id, uid }: NewReport['repo']): Promise<void> {
  await giveBack(tx, uid, await store.deleteReportsOf(tx, id))
}

/** Some of those of a repo that is being removed; answers with how many. */
export async function forgetSomeReports(tx: Tx, { id, uid }: NewReport['repo'], most: number): Promise<number> {
  const { count, bytes } = await store.deleteSomeReportsOf(tx, id, most)
  await giveBack(tx, uid, bytes)
  return count
}

/** With their image. */
export async function forgetReportsOf(tx: Tx, { id, uid }: NewReport['repo'], digest: string): Promise<void> {
  await giveBack(tx, uid, await store.deleteReportsOfImage(tx, id, digest))
}
