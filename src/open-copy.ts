// Opens a database and two stores, for the command that copies blobs.
import { openBlobs } from './blobs/open.ts'
import type { Config } from './config.ts'
import { openExisting } from './open-database.ts'

export { copyBlobs, switchBlobs } from './copy-blobs.ts'

/** The store of the settings, and the one that `to` names. */
export async function openCopy(config: Config, to: string) {
  await using opening = new AsyncDisposableStack()
  const { db } = opening.adopt(await openExisting(config), (open) => open.close())
  const store = async (place: string) =>
    opening.adopt(await openBlobs(place, config.data, { env: config.aws }), (one) => one.close())
  const stores = { from: await store(config.blobs), to: await store(to) }
  const opened = opening.move()
  return { db, ...stores, close: () => opened.disposeAsync() }
}
