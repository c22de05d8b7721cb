// Decompresses HTTP responses by their Content-Encoding (RFC 9110, section 8.4).
import { type Duplex, pipeline, Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'

const decoders: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}
/** Limit on encodings in one header, because each needs memory of its own. */
const mostEncodings = 2

/** Encodings of a response in the order in which the server has applied them, in lower case. `identity` is left out. */
export function encodingsOf(header: string | undefined): string[] {
  const names = (header ?? '').split(',').map((name) => name.trim().toLowerCase())
  return names.filter((name) => name !== '' && name !== 'identity')
}

/** True if `decoded` can decompress the encodings. */
export function isSupported(encodings: readonly string[]): boolean {
  return encodings.length <= mostEncodings && encodings.every((name) => Object.hasOwn(decoders, name))
}

/** Decompresses a body. An error of the body is thrown unchanged. `failed` creates the error for damaged compression. */
export async function* decoded(
  body: AsyncIterable<Uint8Array>,
  encodings: readonly string[],
  failed: (cause: unknown) => Error,
): AsyncGenerator<Uint8Array> {
  let thrown: { error: unknown } | undefined
  const source = async function* () {
    try {
      yield* body
    } catch (error) {
      thrown = { error }
      throw error
    }
  }
  const streams = encodings.toReversed().map((name) => decoders[name]!())
  const last = pipeline([Readable.from(source()), ...streams], () => {}) as Duplex
  try {
    yield* last as AsyncIterable<Uint8Array>
  } catch (error) {
    throw thrown ? thrown.error : failed(error)
  }
}
