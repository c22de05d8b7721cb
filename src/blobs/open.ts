import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Blobs } from './blobs.ts'
import { openDisk } from './disk.ts'

/** The folder that a setting names, as a path or as a `file://` URL; the data folder's own unless it names one. */
export function blobFolder(setting: string, data: string): string {
  if (setting === '') return join(data, 'blobs')
  return setting.startsWith('file:') ? fileURLToPath(setting) : setting
}

/**
 * Throws with the reason when nothing can be kept there. Of a folder that was named only the last part is made: where the
 * rest is missing, a disk is not mounted or the name is wrong.
 */
export async function openBlobs(setting: string, data: string): Promise<Blobs> {
  const folder = blobFolder(setting, data)
  try {
    await mkdir(folder, { recursive: setting === '', mode: 0o700 }).catch(unlessThere)
    const blobs = await openDisk(folder)
    await (await blobs.begin()).discard()
    return blobs
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw new Error(`blobs cannot be kept in ${folder}: ${reasons[code] ?? message}`, { cause: error })
  }
}

const reasons: Record<string, string> = {
  ENOENT: 'the folder above it is not there',
  ENOTDIR: 'it is not a folder',
  EEXIST: 'it is not a folder',
  EACCES: 'it may not be written to',
  EPERM: 'it may not be written to',
  EROFS: 'it may not be written to',
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}
