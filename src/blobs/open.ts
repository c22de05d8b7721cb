import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Blobs } from './blobs.ts'
import { idFile, openDisk } from './disk.ts'
import { isBucket, nameOf, parseBucket } from './s3/bucket.ts'
import type { S3Options } from './s3/store.ts'

/** Blob folder, from a setting with a path or a `file://` URL. Without the setting, it is in the data folder. */
export function blobFolder(setting: string, data: string): string {
  if (setting === '') return join(data, 'blobs')
  return setting.startsWith('file:') ? fileURLToPath(setting) : setting
}

/** Name of the blob store for messages, and the path or key of the file with its ID. */
export function blobLocationOf(setting: string, data: string): { name: string; kind: 'folder' | 'bucket'; id: string } {
  if (!isBucket(setting)) {
    const name = blobFolder(setting, data)
    return { name, kind: 'folder', id: join(name, idFile) }
  }
  const name = nameOf(parseBucket(setting))
  return { name, kind: 'bucket', id: `${name}/${idFile}` }
}

/**
 * Opens the blob store. Throws with the reason if it cannot be used. Creates at most the last folder of a configured path. If a
 * parent folder is missing, a disk is not mounted or the path is wrong.
 */
export async function openBlobs(setting: string, data: string, s3: S3Options): Promise<Blobs> {
  const { name } = blobLocationOf(setting, data)
  try {
    if (isBucket(setting)) {
      const { openBucket } = await import('./s3/store.ts')
      return await openBucket(parseBucket(setting), s3)
    }
    await mkdir(name, { recursive: setting === '', mode: 0o700 }).catch(ignoreExisting)
    const blobs = await openDisk(name)
    await (await blobs.begin(0, '')).discard()
    return blobs
  } catch (error) {
    const { code = '', message, cause } = error as NodeJS.ErrnoException
    const why = isBucket(setting) && cause instanceof Error ? `${message}: ${cause.message}` : message
    throw new Error(`blobs cannot be stored in ${name}: ${reasons[code] ?? why}`, { cause: error })
  }
}

const reasons: Record<string, string> = {
  ENOENT: 'its parent folder does not exist',
  ENOTDIR: 'it is not a folder',
  EEXIST: 'it is not a folder',
  EACCES: 'the server has no permission to write to it',
  EPERM: 'the server has no permission to write to it',
  EROFS: 'its file system is read-only',
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}
