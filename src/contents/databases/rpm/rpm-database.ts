// Reads rpm databases in all formats, and the package list of Azure Linux images without rpm.
import { setImmediate } from 'node:timers/promises'
import { watchOf } from '../../layers/watched.ts'
import { type Found, type Gap, type Package, Unreadable } from '../../packages.ts'
import { sourcePackageOf } from '../../rpm-module.ts'
import { type Entry, entryOf } from '../entry.ts'
import { linesOf } from '../lines.ts'
import { isBerkeleyHash, valuesInBerkeleyHash } from './berkeley-hash.ts'
import { blobsInNdb, ndbMagic } from './ndb-packages.ts'
import { type FileBudget, type RpmHeader, readRpmHeader } from './rpm-header.ts'
import type { SqliteLog } from './sqlite-log.ts'
import { blobsInSqlite, sqliteMagic } from './sqlite-rows.ts'

/** Limits for one database on the bytes of a package header, on packages, on files, and on package files of languages. */
const limits = { headerBytes: 32 * 2 ** 20, entries: 20_000, files: 5_000_000, ownedFiles: 20_000 }
const maxText = 512
const atOnce = 10

/**
 * Returns one package or gap for each entry. If the whole file has a problem, returns a gap, and `isDatabase` is false. `log` is
 * the write-ahead log of a SQLite database.
 */
export async function readRpmDatabase(path: string, bytes: Buffer, log?: SqliteLog): Promise<Found> {
  const all: (RpmHeader | Entry)[] = []
  const owned: [path: string, name: string][] = []
  const files = { left: limits.files }
  let damage: Gap | undefined
  try {
    for (const one of headersIn(path, bytes, log)) {
      if (all.length >= limits.entries)
        throw new Unreadable('LIMIT_EXCEEDED', `the rpm database has more than ${limits.entries} packages`)
      if ('files' in one) addOwned(one, owned, files)
      // Removing the file list releases the memory of the package's blob.
      all.push('files' in one ? { ...one, files: noFiles } : one)
      if (all.length % atOnce === 0) await setImmediate()
    }
  } catch (error) {
    damage = { path, ...damageOf(error) }
  }
  const epochs = epochsOfSources(all)
  const entries = all.map((one) => ('files' in one ? packageOf(one, epochs) : one))
  const gaps = entries.flatMap((one) => ('gap' in one ? [{ path, ...one.gap }] : []))
  return {
    packages: entries.flatMap((one) => ('package' in one ? [one.package] : [])),
    gaps: damage ? [damage, ...gaps] : gaps,
    isDatabase: damage === undefined,
    owned,
  }
}

function* headersIn(path: string, bytes: Buffer, log: SqliteLog | undefined): Generator<RpmHeader | Entry> {
  if (path.endsWith('/container-manifest-2')) return yield* linesOfManifest(bytes)
  for (const blob of blobsIn(bytes, log)) yield blob ? headerIn(blob) : { gap: tooLarge }
}

const tooLarge = {
  reason: 'LIMIT_EXCEEDED' as const,
  message: `an rpm package header has more than ${limits.headerBytes} bytes or is incomplete`,
}

function blobsIn(bytes: Buffer, log: SqliteLog | undefined): Iterable<Buffer | undefined> {
  if (bytes.subarray(0, sqliteMagic.length).equals(sqliteMagic)) {
    return blobsInSqlite(bytes, 'Packages', limits.headerBytes, log)
  }
  if (bytes.subarray(0, ndbMagic.length).equals(ndbMagic)) return blobsInNdb(bytes, limits.headerBytes)
  if (isBerkeleyHash(bytes)) return valuesInBerkeleyHash(bytes, limits.headerBytes)
  throw new Unreadable('UNSUPPORTED', 'the rpm database has an unknown format')
}

/** An offset outside of the file is also damage. */
function damageOf(error: unknown): Pick<Gap, 'reason' | 'message'> {
  if (error instanceof RangeError) return { reason: 'DAMAGED', message: 'the rpm database is damaged' }
  if (!(error instanceof Unreadable)) throw error
  return { reason: error.reason, message: error.message }
}

function headerIn(blob: Buffer): RpmHeader | Entry {
  try {
    return readRpmHeader(blob)
  } catch (error) {
    return { gap: damageOf(error) }
  }
}

/**
 * Reads the package list of Azure Linux. The fields of a line are separated by tabs: name, version and release, epoch,
 * architecture and source package among others.
 */
function* linesOfManifest(bytes: Buffer): Generator<RpmHeader | Entry> {
  for (const line of linesOf(bytes.toString())) {
    if (line.trim() === '') continue
    const [name = '', full = '', , , , epoch = '', , arch = '', , source = ''] = line.slice(0, 4096).split('\t')
    const hyphen = full.lastIndexOf('-')
    if (source === '' || hyphen < 1) {
      yield { gap: { reason: 'DAMAGED', message: 'a line does not have all fields of a package' } }
      continue
    }
    const valueOrEmpty = (value: string): string => (value === '(none)' ? '' : value)
    const version = { version: full.slice(0, hyphen), release: full.slice(hyphen + 1), epoch: valueOrEmpty(epoch) }
    yield { name, ...version, arch: valueOrEmpty(arch), source: valueOrEmpty(source), module: '', files: noFiles }
  }
}

function* noFiles(): Generator<string> {}

const versionOf = ({ version, release }: RpmHeader): string => (release === '' ? version : `${version}-${release}`)
const withEpoch = (epoch: string, version: string): string =>
  epoch === '' || epoch === '0' || version === '' ? version : `${epoch}:${version}`

/**
 * Epochs of source packages, because their file names contain no epoch. The epoch is that of a binary package with the same
 * version.
 */
function epochsOfSources(all: readonly (RpmHeader | Entry)[]): ReadonlyMap<string, string> {
  const headers = all.filter((one) => 'files' in one)
  const same = headers.filter((one) => sourcePackageOf(one.source)?.version === versionOf(one))
  return new Map(same.map(({ source, epoch }) => [source, epoch]))
}

function packageOf(header: RpmHeader, epochs: ReadonlyMap<string, string>): Entry {
  const { name, arch, epoch } = header
  const version = header.version === '' ? '' : withEpoch(epoch, versionOf(header))
  const source = sourcePackageOf(header.source)
  const [module = '', stream = ''] = header.module.split(':')
  const found: Package = {
    ...{ kind: 'rpm', name, version, arch },
    origin: source?.name ?? name,
    originVersion: source ? withEpoch(epochs.get(header.source) ?? epoch, source.version) : version,
    ...(module !== '' && stream !== '' ? { module: `${module}:${stream}` } : {}),
  }
  if ([name, version, arch, found.origin, found.originVersion].some(({ length }) => length > maxText)) {
    return {
      gap: { reason: 'LIMIT_EXCEEDED', message: `a field of an rpm package has more than ${maxText} characters` },
    }
  }
  return entryOf(found, `an rpm package without ${name === '' ? 'a name' : `a version: ${name.slice(0, 100)}`}`)
}

/** Adds the files of a package that are programs or package files of languages. */
function addOwned(header: RpmHeader, owned: [path: string, name: string][], files: FileBudget): void {
  try {
    for (const path of header.files(files)) {
      if (owned.length >= limits.ownedFiles) return
      const isWanted = watchOf(path) !== 'program' || /(?:^|\/)(?:s?bin|libexec)\//.test(path)
      if (isWanted) owned.push([path, header.name])
    }
  } catch (error) {
    // If the file list is damaged, the package owns no files, so no finding is suppressed.
    damageOf(error)
  }
}
