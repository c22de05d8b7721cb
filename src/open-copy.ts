// Opens a database and two stores, for the command that copies blobs.
import { openBlobs } from './blobs/open.ts'
import type { Config } from './config.ts'
import { type Copied, copyBlobs } from './copy-blobs.ts'
import { openExisting } from './open-database.ts'

/** From the store of the settings to the one that `to` names. */
export async function copyBlobsOf(config: Config, to: string, report: (copied: Copied) => void): Promise<Copied> {
  await using opening = new AsyncDisposableStack()
  const { db } = opening.adopt(await openExisting(config), (open) => open.close())
  const store = async (place: string) =>
    opening.adopt(await openBlobs(place, config.data, { env: config.aws }), (one) => one.close())
  return await copyBlobs(db, await store(config.blobs), await store(to), report)
}
