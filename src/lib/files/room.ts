// Free space of a disk.
import { randomBytes } from 'node:crypto'
import { rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Free bytes and files above which a disk is not full. Below them, a file is written to find out. */
const amplyBytes = 64 << 20
const amplyFiles = 1000
const probe = Buffer.alloc(1 << 20, 1)

/** Number of free bytes on the disk of the folder. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** True if a file of 1 MiB cannot be written to the folder. Throws for any other error of the disk. */
export async function isDiskFull(folder: string): Promise<boolean> {
  const { bavail, bsize, files, ffree } = await statfs(folder)
  // `files` is 0 for file systems that do not limit the number of files.
  if (bavail * bsize > amplyBytes && (files === 0 || ffree > amplyFiles)) return false
  // Writes a file, since the free space above excludes blocks that are reserved for root, and the server may run as root.
  const file = join(folder, `.room-${randomBytes(8).toString('hex')}`)
  try {
    await writeFile(file, probe, { mode: 0o600, flag: 'wx' })
    return false
  } catch (error) {
    if (['ENOSPC', 'EDQUOT'].includes(String((error as NodeJS.ErrnoException).code))) return true
    throw error
  } finally {
    await rm(file, { force: true })
  }
}
