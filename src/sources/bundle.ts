// Data sources as one OCI artifact, for servers that cannot reach the sources. Each source is a layer, and each line of the layer
// is a record.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { sha256Pattern } from '#lib/digest.ts'
import { sourceNamed } from './definitions.ts'
import type { Fetched, Read } from './fetch.ts'
import { rankLine } from './ranks.ts'
import { recordLine } from './record-lines.ts'
import { type Json, listAt, objectAt, parseJson, requiredAt, textAt, timeAt, WrongRecord } from './values.ts'

export const bundleType = 'application/vnd.pinfold.vulnerability-data.v1+json'
const configType = 'application/vnd.pinfold.vulnerability-data.config.v1+json'
const layerType = 'application/vnd.pinfold.vulnerability-data.source.v1.jsonl+zstd'
export const manifestType = 'application/vnd.oci.image.manifest.v1+json'

export type Descriptor = { mediaType: string; digest: string; size: number }

/**
 * Data source in a bundle. Ecosystems and license are not in the bundle, because the reader finds them by the name of the source.
 */
export type PackedSource = {
  name: string
  licence: string
  /** Build time of the source. Empty if unknown. */
  buildTime: string
  records: number
  /** True if the bundle has all records of the source. */
  complete: boolean
  layer: Descriptor
}

/** Limits on the content of a bundle that is read. */
export const bundleLimits = {
  document: 4 * 1024 * 1024,
  sources: 1000,
  layer: 2 ** 31,
  unpacked: 2 ** 35,
  line: 16 * 1024 * 1024,
} as const

/** Writes a layer to a file. Leaves out invalid records, and reports them to `onProblem`. */
export async function writeLayer(
  reads: AsyncIterable<Read>,
  file: string,
  onProblem: (problem: { at: string; problem: string }) => void,
): Promise<{ layer: Descriptor; records: number }> {
  let records = 0
  const lines = async function* () {
    for await (const one of reads) {
      if ('problem' in one) {
        onProblem(one)
        continue
      }
      records++
      yield `${JSON.stringify('record' in one ? one.record : one.rank)}\n`
    }
  }
  const hash = createHash('sha256')
  const params = { [constants.ZSTD_c_compressionLevel]: 9 }
  const hashed = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk)
      yield chunk
    }
  }
  const packer = createZstdCompress({ params })
  const text = lines()
  const packed = pipeline(packer, hashed, createWriteStream(file, { mode: 0o600 }))
  await Promise.all([packed, writeAll(packer, text)])
  const layer = { mediaType: layerType, digest: `sha256:${hash.digest('hex')}`, size: (await stat(file)).size }
  return { layer, records }
}

/**
 * Writes each line separately, and then ends the stream. Writing the last line together with the end would change the compressed
 * bytes.
 */
async function writeAll(packer: Writable, lines: AsyncIterable<string>): Promise<void> {
  try {
    for await (const line of lines) {
      await new Promise<void>((resolve, reject) => packer.write(line, (error) => (error ? reject(error) : resolve())))
    }
    packer.end()
  } catch (error) {
    packer.destroy(error as Error)
    throw error
  }
}

/** Manifest and config of a bundle. The same sources give the same bytes. */
export function bundleOf(sources: readonly PackedSource[]): { config: Buffer; manifest: Buffer } {
  const config = Buffer.from(
    JSON.stringify({ version: 1, sources: sources.map(({ layer, ...one }) => ({ ...one, digest: layer.digest })) }),
  )
  const layers = sources.map(({ name, layer }) => {
    const title = `${name.replaceAll('/', '-')}.jsonl.zst`
    return { ...layer, annotations: { 'org.opencontainers.image.title': title } }
  })
  const described = { mediaType: configType, digest: digestOf(config), size: config.length }
  const facts = { schemaVersion: 2, mediaType: manifestType, artifactType: bundleType }
  return { config, manifest: Buffer.from(JSON.stringify({ ...facts, config: described, layers })) }
}

export function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}

/** Access to the content of a bundle. Each function throws WrongRecord if the content is missing or too long. */
export type BundleContent = {
  /** Reads a document. */
  document(what: Descriptor): Promise<Buffer>
  /** Copies a layer to a file. */
  layer(what: Descriptor, file: string): Promise<void>
}

/** Returns the sources of a bundle. Throws WrongRecord if it is not a bundle. */
export async function readBundle(manifest: Buffer, content: BundleContent): Promise<PackedSource[]> {
  const given = objectAt(parseJson(manifest.toString('utf8')), 'manifest')
  const config = descriptorAt(given.config, 'config', bundleLimits.document)
  if (given.artifactType !== bundleType || config.mediaType !== configType) {
    throw new WrongRecord('the artifact is not a bundle of vulnerability data')
  }
  const listed = listAt(given.layers, 'layers')
  if (listed.length > bundleLimits.sources)
    throw new WrongRecord(`the bundle has more than ${bundleLimits.sources} layers`)
  const found = listed.map((one, i) => descriptorAt(one, `layers[${i}]`, bundleLimits.layer))
  const layers = new Map(found.map((one) => [one.digest, one]))
  const text = await content.document(config)
  if (digestOf(text) !== config.digest) throw new WrongRecord('config does not match its digest')
  const { version, sources } = objectAt(parseJson(text.toString('utf8')), 'config')
  if (version !== 1) throw new WrongRecord('the format of the bundle is not supported; use a newer version of Pinfold')
  const packed = listAt(sources, 'sources').map((one, i) => sourceAt(objectAt(one, `sources[${i}]`), i, layers))
  if (packed.length > bundleLimits.sources || new Set(packed.map(({ name }) => name)).size < packed.length) {
    throw new WrongRecord(`sources must have at most ${bundleLimits.sources} entries, each with another name`)
  }
  return packed
}

function descriptorAt(value: unknown, path: string, most: number): Descriptor {
  const { mediaType, digest, size } = objectAt(value, path)
  if (typeof digest !== 'string' || !sha256Pattern.test(digest))
    throw new WrongRecord(`${path}.digest must be a SHA-256 digest`)
  if (!Number.isSafeInteger(size) || (size as number) < 0 || (size as number) > most) {
    throw new WrongRecord(`${path}.size must be from 0 to ${most}`)
  }
  return { mediaType: textAt(mediaType, `${path}.mediaType`), digest, size: size as number }
}

function sourceAt(one: Json, i: number, layers: ReadonlyMap<string, Descriptor>): PackedSource {
  const path = `sources[${i}]`
  const layer = layers.get(textAt(one.digest, `${path}.digest`))
  if (!layer || layer.mediaType !== layerType)
    throw new WrongRecord(`${path}.digest must be the digest of a layer with records`)
  if (!Number.isSafeInteger(one.records)) throw new WrongRecord(`${path}.records must be a number`)
  return {
    name: requiredAt(one.name, `${path}.name`),
    licence: requiredAt(one.licence, `${path}.licence`),
    buildTime: timeAt(one.buildTime, `${path}.buildTime`),
    records: one.records as number,
    complete: one.complete === true,
    layer,
  }
}

/** Fingerprint of a source in a bundle. The next run compares it to detect a change. */
const fingerprintOf = ({ layer, complete }: PackedSource) => `bundle:${layer.digest}${complete ? '' : ':part'}`

/**
 * Reads a source from a bundle, in the form of a fetch. The whole layer is read and verified against the bundle before the first
 * record is returned. Throws WrongRecord if the layer is invalid.
 */
export async function fetchPacked(
  source: PackedSource,
  content: BundleContent,
  { file, fingerprint }: { file: string; fingerprint: string },
): Promise<Fetched> {
  const facts = { fingerprint: fingerprintOf(source), buildTime: source.buildTime }
  const end = () => facts
  if (facts.fingerprint === fingerprint) return { records: none(), complete: false, end }
  await content.layer(source.layer, file)
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  if (`sha256:${hash.digest('hex')}` !== source.layer.digest) {
    throw new WrongRecord('the layer does not match its digest')
  }
  let count = 0
  const read = sourceNamed(source.name, '')?.kind === 'kev' ? rankOf : recordOf
  for await (const _ of readsOf(file, read)) count++
  if (count !== source.records) throw new WrongRecord(`the layer has ${count} records instead of ${source.records}`)
  return { records: readsOf(file, read), complete: source.complete, end }
}

async function* none(): AsyncGenerator<Read> {}

const recordOf = (line: string): Read => ({ record: recordLine(line) })
const rankOf = (line: string): Read => ({ rank: rankLine(line) })

async function* readsOf(file: string, read: (line: string) => Read): AsyncGenerator<Read> {
  const packed = createReadStream(file)
  const unpacked = createZstdDecompress()
  packed.on('error', (error) => unpacked.destroy(error)).pipe(unpacked)
  let line = 0
  try {
    for await (const text of linesOf(unpacked)) {
      line++
      yield read(text)
    }
  } catch (error) {
    if (error instanceof WrongRecord) throw new WrongRecord(`line ${line}: ${error.message}`)
    if (String((error as NodeJS.ErrnoException).code).startsWith('ZSTD_')) {
      throw new WrongRecord('the layer cannot be decompressed')
    }
    throw error
  } finally {
    packed.destroy()
    unpacked.destroy()
  }
}

/** Lines of a text. Throws if a line or the whole text is too long. */
async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let parts: Buffer[] = []
  let [length, total] = [0, 0]
  for await (const chunk of chunks) {
    total += chunk.length
    if (total > bundleLimits.unpacked)
      throw new WrongRecord(`the layer has more than ${bundleLimits.unpacked} bytes after decompression`)
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      parts.push(chunk.subarray(start, end))
      yield Buffer.concat(parts).toString('utf8')
      parts = []
      length = 0
      start = end + 1
    }
    length += chunk.length - start
    if (length > bundleLimits.line) throw new WrongRecord(`has more than ${bundleLimits.line} bytes`)
    if (start < chunk.length) parts.push(chunk.subarray(start))
  }
  if (length > 0) throw new WrongRecord('the last line has no line break')
}
