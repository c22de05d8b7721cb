import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Blobs } from './blobs.ts'
import { openDisk } from './disk.ts'

/** The folder that a setting names, as a path or as a `file://` URL; the data folder's own unless it names one. */
export function blobFolder(setting: string, data: string): string {
  if (setting === '') return join(data, 'blobs')
  return setting.startsWith('file:') ? fileURLToPath(setting) : setting
}

export function openBlobs(setting: string, data: string): Promise<Blobs> {
  return openDisk(blobFolder(setting, data))
}
