import { buffer } from 'node:stream/consumers'
import { type Header, pack } from 'tar-stream'

/** The entries of a layer by path: content makes a file, `undefined` a directory, `type` anything else. */
export type LayerEntries = Record<string, string | Uint8Array | undefined | Omit<Partial<Header>, 'name'>>

/** The same entries make the same bytes, at any time. */
const mtime = new Date('2026-01-01T00:00:00Z')

/** A layer as builders write it, not compressed. Paths come in the order given. */
export async function tarOf(entries: LayerEntries): Promise<Buffer> {
  const archive = pack()
  for (const [name, given] of Object.entries(entries)) {
    if (given === undefined) archive.entry({ name, mtime, type: 'directory' })
    else if (typeof given === 'string' || given instanceof Uint8Array) archive.entry({ name, mtime }, given)
    else archive.entry({ name, mtime, ...given }, '')
  }
  archive.finalize()
  return buffer(archive as AsyncIterable<Uint8Array>)
}
