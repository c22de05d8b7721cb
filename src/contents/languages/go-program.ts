// Reads the module information in programs that Go has built. The format is that of debug/buildinfo since Go 1.18.

import { goRelease } from '#versions/go-names.ts'
import type { Found, Package } from '../packages.ts'
import { languagePackage } from './language-package.ts'

const elf = Buffer.from('\x7fELF', 'latin1')
const magic = Buffer.from('\xff Go buildinf:', 'latin1')
/**
 * Header of the build information: magic bytes, pointer size and flags. If the texts are in the file itself, the remaining bytes
 * are unused.
 */
const headerBytes = 32
const textsFollow = 2
/** The text about modules is between two marks of 16 bytes. */
const sentinelBytes = 16

/** Limit on the bytes of the module information. Programs with thousands of modules have about a megabyte. */
const maxInfo = 4 * 2 ** 20
const maxModules = 5000
/** Limit on the positions with magic bytes that are examined in one file. */
const maxCandidates = 100

/** Reads the modules of a Go program. Returns undefined if the file is no `ELF` executable, or if Go did not build the file. */
export async function readGoProgram(path: string, content: AsyncIterable<unknown>): Promise<Found | undefined> {
  const search = new BuildInfoSearch()
  for await (const chunk of content) search.push(chunk as Buffer)
  const info = search.found()
  if (info === 'hidden') {
    return {
      packages: [],
      gaps: [
        {
          path,
          reason: 'LIMIT_EXCEEDED',
          message: 'the program has too many places that look like Go build information',
        },
      ],
    }
  }
  if (info === 'old') {
    return {
      packages: [],
      gaps: [{ path, reason: 'UNSUPPORTED', message: 'Go programs built before Go 1.18 do not list their modules' }],
    }
  }
  return info && modulesOf(path, info)
}

type BuildInfo = { go: string; modules: string }

/** Searches a stream for the build information. Only the build information is kept in memory. */
class BuildInfoSearch {
  #head: Buffer = Buffer.alloc(0)
  #isElf: boolean | undefined
  /**
   * The bytes after the magic bytes. Before these are found, the last bytes of the stream, which may be the beginning of the
   * magic bytes.
   */
  #tail: Buffer = Buffer.alloc(0)
  #collecting: Buffer[] | undefined
  #collected = 0
  #info: BuildInfo | undefined
  #isOld = false
  #candidates = 0

  push(given: Buffer): void {
    let chunk = given
    if (this.#isElf === undefined) {
      chunk = Buffer.concat([this.#head, given])
      this.#head = chunk
      if (chunk.length < elf.length) return
      this.#isElf = chunk.subarray(0, elf.length).equals(elf)
      this.#head = Buffer.alloc(0)
    }
    if (!this.#isElf || this.#info || this.#candidates > maxCandidates) return
    if (this.#collecting) this.#collect(chunk)
    else this.#search(Buffer.concat([this.#tail, chunk]))
  }

  found(): BuildInfo | 'old' | 'hidden' | undefined {
    while (this.#collecting) this.#evaluate()
    if (!this.#info && this.#candidates > maxCandidates) return 'hidden'
    return this.#info ?? (this.#isOld ? 'old' : undefined)
  }

  #search(bytes: Buffer): void {
    const at = bytes.indexOf(magic)
    if (at < 0) {
      this.#tail = Buffer.from(bytes.subarray(Math.max(0, bytes.length - magic.length + 1)))
      return
    }
    this.#tail = Buffer.alloc(0)
    if (++this.#candidates > maxCandidates) return
    this.#collecting = []
    this.#collected = 0
    this.#collect(Buffer.from(bytes.subarray(at)))
  }

  #collect(chunk: Buffer): void {
    this.#collecting!.push(chunk)
    this.#collected += chunk.length
    // A program that reads build information contains the magic bytes as data. The flags show early that such a match is false.
    if (this.#collected >= headerBytes + maxInfo) this.#evaluate()
    else if (this.#collecting!.length === 1 && this.#collected >= headerBytes) {
      if (!isHeader(chunk)) this.#evaluate()
    }
  }

  /** After a false match, the search continues behind the match. */
  #evaluate(): void {
    const bytes = Buffer.concat(this.#collecting!)
    this.#collecting = undefined
    const info = readInfo(bytes)
    if (info === 'old') this.#isOld = true
    else if (info) this.#info = info
    if (!this.#info) this.#search(bytes.subarray(magic.length))
  }
}

function isHeader(bytes: Buffer): boolean {
  const [pointerSize, flags] = [bytes[magic.length]!, bytes[magic.length + 1]!]
  return flags === textsFollow ? pointerSize === 0 || pointerSize === 4 || pointerSize === 8 : false
}

function readInfo(bytes: Buffer): BuildInfo | 'old' | undefined {
  if (bytes.length < headerBytes) return undefined
  const [pointerSize, flags] = [bytes[magic.length]!, bytes[magic.length + 1]!]
  if (flags <= 1 && (pointerSize === 4 || pointerSize === 8)) return 'old'
  if (!isHeader(bytes)) return undefined
  const go = textAt(bytes, headerBytes)
  if (!go || !/^(?:go\d|devel)/.test(go.text)) return undefined
  const modules = textAt(bytes, go.end)
  if (!modules) return undefined
  const inner =
    modules.text.length >= 2 * sentinelBytes + 1 ? modules.bytes.subarray(sentinelBytes, -sentinelBytes) : undefined
  return { go: go.text, modules: inner?.toString() ?? '' }
}

/** Reads a text with its length before it. The length is stored in groups of seven bits. */
function textAt(bytes: Buffer, at: number): { text: string; bytes: Buffer; end: number } | undefined {
  let [length, shift, i] = [0, 0, at]
  for (;;) {
    const byte = bytes[i++]
    if (byte === undefined || shift > 28) return undefined
    length += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) break
    shift += 7
  }
  const end = i + length
  if (length > maxInfo || end > bytes.length) return undefined
  const part = bytes.subarray(i, end)
  return { text: part.toString('latin1'), bytes: part, end }
}

/**
 * Parses lines such as `dep example.com/module v1.2.3 h1:…`, whose fields are separated by tabs. A line with `=>` names the
 * module that replaces the module of the line before.
 */
function modulesOf(path: string, { go, modules }: BuildInfo): Found {
  const found: [name: string, version: string][] = [['stdlib', goRelease(go)]]
  let tooMany = false
  for (const line of modules.split('\n')) {
    const [word, name, version = ''] = line.split('\t')
    if (!name || name.length > 512 || version.length > 512) continue
    if (word === '=>' && found.length > 1) found[found.length - 1] = [name, version || '(devel)']
    else if (word === 'mod' || word === 'dep') {
      if (found.length >= maxModules) tooMany = true
      else found.push([name, version || '(devel)'])
    }
  }
  const packages = found.map(([name, version]): Package => languagePackage('golang', name, version, path))
  const message = `the program has more than ${maxModules} modules`
  return { packages, gaps: tooMany ? [{ path, reason: 'LIMIT_EXCEEDED', message }] : [] }
}
