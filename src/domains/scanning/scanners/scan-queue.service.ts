// Queues images for scanners, in the transaction of the push or request.

import type { By } from '#caller.ts'
import type { Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import * as store from './scan-jobs.store.ts'
import { isFor, mostJobs, type Scanner } from './scanners.model.ts'
import { listScanners } from './scanners.store.ts'

type Repo = { id: number; uid: string }

type Image = { digest: string; mediaType: string }

/** Queues a pushed image for each scanner that scans on push. */
export async function queueScans(
  tx: Tx,
  { cause, log }: Pick<By, 'cause' | 'log'>,
  repo: Repo,
  image: Image,
): Promise<void> {
  for (const scanner of await listScanners(tx)) {
    if (!scanner.onPush || !isFor(scanner, repo)) continue
    const kept = await queueFor(tx, { actor: cause.actor, now: cause.now }, scanner, repo, [image])
    if (!kept)
      log.warn('image not queued for a scanner: queue is full', { scanner: scanner.name, digest: image.digest })
  }
}

/** Queues images of a repository for one scanner. Returns false if the queue became full before all images were queued. */
export async function queueFor(
  tx: Tx,
  { actor, now }: { actor: string; now: string },
  scanner: Pick<Scanner, 'id'>,
  repo: Repo,
  images: readonly Image[],
): Promise<boolean> {
  const organization = rootOf(repo.uid)
  let room = mostJobs - (await store.countWaiting(tx, scanner.id, organization, mostJobs))
  for (const { digest, mediaType } of images) {
    if (room <= 0) return false
    const job = { organization, digest, mediaType, actor, requestTime: now }
    if (await store.insertJob(tx, scanner.id, repo.id, job)) room--
  }
  return true
}
