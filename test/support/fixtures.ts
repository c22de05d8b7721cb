import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

const folder = fileURLToPath(new URL('../data/', import.meta.url))

/** Content of a file in `test/data`. A file whose name ends in .gz is decompressed. */
export function fixture(path: string): Buffer {
  const bytes = readFileSync(folder + path)
  return path.endsWith('.gz') ? gunzipSync(bytes) : bytes
}
