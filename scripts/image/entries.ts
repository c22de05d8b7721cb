// Files of a layer. Order, time and owner are fixed, so equal files give equal bytes.
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { pack } from 'tar-stream'

export type Entry = {
  /** Path from the root of the image, without a slash at either end. */
  path: string
  mode: number
  content?: Buffer
  link?: string
  /** Owner, if it is not root. */
  owner?: number
}

/**
 * Files below a folder that `keeps` accepts, for the path `at` of the image. Executable files stay executable; other mode bits
 * are not kept.
 */
export function entriesBelow(folder: string, at: string, keeps: (path: string) => boolean = () => true): Entry[] {
  const entries: Entry[] = []
  const walk = (below: string): void => {
    for (const name of readdirSync(join(folder, below)).sort()) {
      const path = below === '' ? name : `${below}/${name}`
      const full = join(folder, path)
      const stat = lstatSync(full)
      if (stat.isDirectory()) {
        walk(path)
        continue
      }
      if (!keeps(path)) continue
      const target = at === '' ? path : `${at}/${path}`
      if (stat.isSymbolicLink()) entries.push({ path: target, mode: 0o777, link: readlinkSync(full) })
      else entries.push({ path: target, mode: stat.mode & 0o100 ? 0o755 : 0o644, content: readFileSync(full) })
    }
  }
  walk('')
  return entries
}

/** Tar archive of the files, and of the folders that contain them. */
export async function tarOf(entries: readonly Entry[], time: Date): Promise<Buffer> {
  const all = new Map<string, Entry>()
  for (const entry of entries) {
    const parts = entry.path.split('/')
    for (let depth = 1; depth < parts.length; depth++) {
      const path = parts.slice(0, depth).join('/')
      if (!all.has(path)) all.set(path, { path, mode: 0o755 })
    }
    all.set(entry.path, entry)
  }
  const tar = pack()
  const pieces: Buffer[] = []
  const read = (async () => {
    for await (const piece of tar) pieces.push(piece as Buffer)
  })()
  for (const { path, mode, content, link, owner = 0 } of [...all.values()].sort(byPath)) {
    const header = { mode, mtime: time, uid: owner, gid: owner, uname: '', gname: '' }
    if (link !== undefined) tar.entry({ ...header, name: path, type: 'symlink', linkname: link })
    else if (content) tar.entry({ ...header, name: path, type: 'file' }, content)
    else tar.entry({ ...header, name: `${path}/`, type: 'directory' })
  }
  tar.finalize()
  await read
  return Buffer.concat(pieces)
}

function byPath(a: Entry, b: Entry): number {
  return a.path < b.path ? -1 : 1
}
