// The worker that reads what pushed images contain, one at a time. What is to be read is in the database, so a server that
// ends leaves nothing undone, and several servers share the work.
import type { App } from '#app.ts'
import {
  claimRead,
  type DueRead,
  finishRead,
  postponeRead,
  readContentsOf,
  unreadable,
} from './image-contents.service.ts'
import { BlobMissing } from './read-image.ts'

export type ImageReader = {
  /** Stops reading; the image at hand is read again by the next server. */
  close(): Promise<void>
}

/** How long an image stays with a server that says nothing. */
const leaseMs = 60_000
/** How often to look for what other servers were asked to read. */
const lookMs = 5_000
/** After the last attempt, about a day after the first, the image counts as unreadable. */
const maxAttempts = 10
const backOffMs = 10_000
const longestBackOffMs = 6 * 3_600_000

export function startImageReader(app: App): ImageReader {
  const stop = new AbortController()
  let wake: () => void = () => {}
  let woken = false
  const unsubscribe = app.images.pushed.subscribe(() => {
    woken = true
    wake()
  })

  const rest = (ms: number): Promise<void> => {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      timer.unref()
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async function work(): Promise<void> {
    while (!stop.signal.aborted) {
      woken = false
      const next = await claimRead(app, leaseMs).catch((error: unknown) => {
        app.log.error('images cannot be read now', { error })
        return { dueTime: undefined }
      })
      if ('digest' in next) {
        await readOne(app, next, stop.signal)
        app.images.read.notify()
      } else if (!woken && !stop.signal.aborted) {
        const wait = next.dueTime === undefined ? lookMs : Date.parse(next.dueTime) - app.clock().getTime()
        await rest(Math.min(Math.max(wait, 10), lookMs))
      }
    }
  }

  const working = work()
  return {
    async close() {
      unsubscribe()
      stop.abort(new Error('the server stops'))
      wake()
      await working
    },
  }
}

async function readOne(app: App, claimed: DueRead, signal: AbortSignal): Promise<void> {
  let read = claimed
  let renewing: Promise<unknown> = Promise.resolve()
  const renew = async () => {
    read = (await postponeRead(app, read, leaseMs)) ?? read
  }
  const timer = setInterval(() => {
    renewing = renewing.then(renew).catch((error: unknown) => app.log.error('lease was not renewed', { error }))
  }, leaseMs / 3)
  const settled = async () => {
    clearInterval(timer)
    await renewing
    return read
  }
  try {
    await readContentsOf(app, claimed, settled, signal)
  } catch (error) {
    await recover(app, await settled(), error, signal).catch((failure: unknown) => {
      // The lease runs out, and then it is tried again.
      app.log.error('image was not put back', { error: failure })
    })
  } finally {
    clearInterval(timer)
  }
}

async function recover(app: App, read: DueRead, error: unknown, signal: AbortSignal): Promise<void> {
  const { repo, digest, attempts } = read
  if (signal.aborted) return void (await postponeRead(app, read, 0, attempts - 1))
  const missing = error instanceof BlobMissing
  if (!missing) app.log.error('image was not read', { repo, digest, attempts, error })
  if (attempts >= maxAttempts) {
    const reason = missing ? 'BLOB_MISSING' : 'FAILED'
    await finishRead(app, read, unreadable(reason, missing ? error.message : 'it could not be read, again and again'))
    return
  }
  await postponeRead(app, read, Math.min(backOffMs * 4 ** (attempts - 1), longestBackOffMs))
}
