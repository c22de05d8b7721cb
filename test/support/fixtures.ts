import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

const folder = fileURLToPath(new URL('../data/', import.meta.url))

/** The bytes of a file of `test/data`, decompressed when its name ends in .gz. */
export function fixture(path: string): Buffer {
  const bytes = readFileSync(folder + path)
  return path.endsWith('.gz') ? gunzipSync(bytes) : bytes
}
