// Has images read again that an earlier reader has read, a few at a time, behind all that nobody has read.
import type { Duty } from '#duty.ts'
import { findOutdated, queueAgain } from './image-contents.service.ts'

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
