// Background job that reads the contents of pushed images, one at a time. The queue is in the database, so a stopped server loses
// nothing and several servers share the work. A server owns an image until the read ends or the server is known to have stopped.
import type { App } from '#app.ts'
import type { Job } from '#job.ts'
import {
  claimRead,
  createReader,
  type DueRead,
  findOutdated,
  finishRead,
  othersWait,
  postponeRead,
  queueAgain,
  type Reader,
  type ReaderLimits,
  readContentsOf,
  readerLimits,
  unreadable,
} from './image-contents.service.ts'
import { BlobMissing } from './read-image.ts'

/** Most attempts to read one image, over about a day. After the last attempt the image counts as unreadable. */
const maxAttempts = 10
const backOffMs = 10_000
const longestBackOffMs = 6 * 3_600_000

/** Reads all images that are due. An image that cannot be read is queued again, and does not fail the run. */
export const readImages: Job = readImagesWithin(readerLimits)

export function readImagesWithin(limits: ReaderLimits): Job {
  return {
    name: 'images.read',
    everyMs: 5_000,
    runsOn: 'every node',
    wake: ({ images }) => images.pushed,
    async run(app, lease) {
      await using reader = createReader(limits)
      let images = 0
      let after = ''
      while (lease.holds()) {
        const next = await claimRead(app, { node: lease.node, isGone: (node) => lease.isGone(node), after })
        if (!next) break
        after = next.organization
        await readOne(app, reader, next, lease.signal)
        app.images.read.notify()
        images++
      }
      return { images }
    },
  }
}

async function readOne(app: App, reader: Reader, read: DueRead, stop: AbortSignal): Promise<void> {
  const { repo, digest } = read
  const others = () => othersWait(app, read)
  await app.images.turns.take(read, others, async (giveWay) => {
    const signal = AbortSignal.any([stop, giveWay])
    try {
      await readContentsOf(app, reader, read, signal)
    } catch (error) {
      if (giveWay.aborted) app.log.info('image read interrupted, because other images wait', { repo, digest })
      await recover(app, read, error, signal)
    }
  })
}

async function recover(app: App, read: DueRead, error: unknown, signal: AbortSignal): Promise<void> {
  const { repo, digest, attempts } = read
  if (signal.aborted) return postponeRead(app, read, 0, attempts - 1)
  const missing = error instanceof BlobMissing
  if (!missing) app.log.error('image could not be read', { repo, digest, attempts, error })
  if (attempts >= maxAttempts) {
    const reason = missing ? 'BLOB_MISSING' : 'FAILED'
    await finishRead(
      app,
      read,
      unreadable(reason, missing ? error.message : 'reading failed repeatedly, because of an error in the server'),
    )
    return
  }
  await postponeRead(app, read, Math.min(backOffMs * 4 ** (attempts - 1), longestBackOffMs))
}

export const readAgain: Job = {
  name: 'images.read-again',
  everyMs: 5_000,
  runsOn: 'one node',
  async run(app, lease) {
    const found = await findOutdated(app, lease.signal)
    if (found.length === 0) return { images: 0 }
    await lease.tx((tx) => queueAgain(tx, found, app.clock().toISOString()))
    app.images.pushed.notify()
    return { images: found.length }
  },
}
