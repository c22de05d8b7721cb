import { buffer } from 'node:stream/consumers'
import { type Header, pack } from 'tar-stream'

/** Entries of a layer by path. Text or bytes make a file, `undefined` makes a directory, and `type` makes any other kind. */
export type LayerEntries = Record<string, string | Uint8Array | undefined | Omit<Partial<Header>, 'name'>>

/** Fixed modification time, so the same entries always give the same bytes. */
const mtime = new Date('2026-01-01T00:00:00Z')

/** Uncompressed layer as an image builder writes it. Paths keep the given order. */
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
