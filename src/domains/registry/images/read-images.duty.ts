// Reads what pushed images contain, one at a time. What is to be read is in the database, so a server that ends leaves
// nothing undone, and several servers share the work: an image is its reader's for as long as that node gives signs of life.
import type { App } from '#app.ts'
import type { Duty } from '#duty.ts'
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

/** After the last attempt, about a day after the first, the image counts as unreadable. */
const maxAttempts = 10
const backOffMs = 10_000
const longestBackOffMs = 6 * 3_600_000

/** Reads all that is due. An image that cannot be read is put back, and fails no run. */
export const readImages: Duty = readImagesWithin(readerLimits)

export function readImagesWithin(limits: ReaderLimits): Duty {
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
      if (giveWay.aborted) app.log.info('image put back, since others wait', { repo, digest })
      await recover(app, read, error, signal)
    }
  })
}

async function recover(app: App, read: DueRead, error: unknown, signal: AbortSignal): Promise<void> {
  const { repo, digest, attempts } = read
  if (signal.aborted) return postponeRead(app, read, 0, attempts - 1)
  const missing = error instanceof BlobMissing
  if (!missing) app.log.error('image was not read', { repo, digest, attempts, error })
  if (attempts >= maxAttempts) {
    const reason = missing ? 'BLOB_MISSING' : 'FAILED'
    await finishRead(app, read, unreadable(reason, missing ? error.message : 'it could not be read, again and again'))
    return
  }
  await postponeRead(app, read, Math.min(backOffMs * 4 ** (attempts - 1), longestBackOffMs))
}

export const readAgain: Duty = {
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
