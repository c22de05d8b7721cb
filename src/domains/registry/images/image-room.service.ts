// Quota check before images are read: their stored contents are charged to the organization.
import type { App } from '#app.ts'
import { isWithinQuota } from '../blobs/usage.service.ts'

const noRoomMs = 10 * 60_000

/**
 * True if the organization is within its quota. Otherwise contents of pushed images could fill the database. A full organization
 * is checked again after 10 minutes.
 */
export async function hasRoom(app: App, organization: string): Promise<boolean> {
  const now = app.clock().getTime()
  if (app.images.full.get(organization, now)) return false
  if (await isWithinQuota(app.db, { app }, organization)) return true
  app.images.full.set(organization, true, now + noRoomMs)
  app.log.info('images are not read, because the organization exceeds its quota', { organization })
  return false
}
