// Whether images of an organisation are read: what is found in them is kept, and is charged to it.
import type { App } from '#app.ts'
import { isWithinQuota } from '../blobs/usage.service.ts'

const noRoomMs = 10 * 60_000

/** What is found in images is kept, and nobody would be kept from pushing more of them. One without room is asked again later. */
export async function hasRoom(app: App, organization: string): Promise<boolean> {
  const now = app.clock().getTime()
  if (app.images.full.get(organization, now)) return false
  if (await isWithinQuota(app.db, { app }, organization)) return true
  app.images.full.set(organization, true, now + noRoomMs)
  app.log.info('images not read, since their organisation stores more than it may', { organization })
  return false
}
