// Quota check before an image is read, since the stored contents of images count against the quota.
import type { App } from '#app.ts'
import { isWithinQuota } from '../blobs/usage.service.ts'

const noRoomMs = 10 * 60_000

/**
 * True if the organization is within its quota, so that its images are read. Otherwise contents of pushed images could fill the
 * database. An organization above its quota is checked again after 10 minutes.
 */
export async function hasCapacity(app: App, organization: string): Promise<boolean> {
  const now = app.clock().getTime()
  if (app.images.full.get(organization, now)) return false
  if (await isWithinQuota(app.db, { app }, organization)) return true
  app.images.full.set(organization, true, now + noRoomMs)
  app.log.info('images are not read, because the organization exceeds its quota', { organization })
  return false
}
