// Says which images scanners elsewhere are to look at, in the transaction that is the reason for it.
import type { Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import * as store from './scan-jobs.store.ts'
import type { Scanner } from './scanners.model.ts'
import { listScanners } from './scanners.store.ts'

type Repo = { id: number; uid: string }

const isFor = ({ groups }: Scanner, repo: Repo): boolean =>
  groups.length === 0 || groups.some((group) => isAtOrBelow(repo.uid, group))

/** Queues an image that was just pushed. Call `app.scanning.scans.notify` after the commit. */
export async function queueScans(
  tx: Tx,
  { cause, log }: Pick<Work, 'cause' | 'log'>,
  repo: Repo,
  image: { digest: string; mediaType: string },
): Promise<void> {
  for (const scanner of await listScanners(tx)) {
    if (!scanner.onPush || !isFor(scanner, repo)) continue
    const kept = await queueOne(tx, { actor: cause.actor, now: cause.now }, scanner, repo, image)
    if (!kept) log.warn('image was not queued for a scanner', { scanner: scanner.name, digest: image.digest })
  }
}

/** Queues an image for all scanners that look at the repo; answers with how many these are, and which have no room. */
export async function queueAsked(
  tx: Tx,
  by: { actor: string; now: string },
  repo: Repo,
  images: readonly { digest: string; mediaType: string }[],
): Promise<{ scanners: number; full: string[] }> {
  const scanners = (await listScanners(tx)).filter((scanner) => isFor(scanner, repo))
  const full = new Set<string>()
  for (const scanner of scanners) {
    for (const image of images) if (!(await queueOne(tx, by, scanner, repo, image))) full.add(scanner.name)
  }
  return { scanners: scanners.length, full: [...full] }
}

async function queueOne(
  tx: Tx,
  { actor, now }: { actor: string; now: string },
  scanner: Scanner,
  repo: Repo,
  { digest, mediaType }: { digest: string; mediaType: string },
): Promise<boolean> {
  const job = { organization: rootOf(repo.uid), digest, mediaType, actor, requestTime: now }
  return store.insertJob(tx, scanner.id, repo.id, job)
}

/** With their image. */
export async function forgetScansOf(tx: Tx, repo: number, digest: string): Promise<void> {
  await store.deleteJobsOfImage(tx, repo, digest)
}

/** With their repo, before it is deleted. */
export async function forgetScans(tx: Tx, repo: number): Promise<void> {
  await store.deleteJobsOf(tx, repo)
}

/** Some of those of a repo that is being removed; answers with how many. */
export async function forgetSomeScans(tx: Tx, repo: number, most: number): Promise<number> {
  return store.deleteSomeJobsOf(tx, repo, most)
}
