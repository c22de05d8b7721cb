// Reads the packages in Java archives from the `pom.properties` files of Maven. Without such a file, uses the manifest.
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import type { Found, Gap, Package } from '../packages.ts'
import { fieldOf, gap, identified } from './language-package.ts'

export type ArchiveLimits = { archiveBytes: number; innerArchiveBytes: number }
/** Remaining limits, which all archives of an image share. */
export type ArchiveBudget = { inflatedBytes: number; archiveEntries: number }

const pomProperties = /^META-INF\/maven\/[^/]+\/[^/]+\/pom\.properties$/
const manifestName = 'META-INF/MANIFEST.MF'
const innerArchive = /\.(?:jar|war|ear|par|hpi|jpi)$/i
const maxPom = 64 * 2 ** 10
const maxManifest = 512 * 2 ** 10
const maxPackages = 5000
const maxName = 512

/** Reads the packages of an archive and of the archives inside it. Archives at deeper levels are not read. */
export async function readJavaArchive(
  path: string,
  bytes: Buffer,
  limits: ArchiveLimits,
  budget: ArchiveBudget,
): Promise<Found> {
  const contents: Contents = { packages: [], gaps: [] }
  await readArchive({ path, bytes, isInner: false }, contents, limits, budget)
  return contents
}

type Contents = { packages: Package[]; gaps: Gap[] }
type Archive = { path: string; bytes: Buffer; isInner: boolean }

/** Reads one archive. Any problem of the archive becomes a gap. */
async function readArchive(
  archive: Archive,
  contents: Contents,
  limits: ArchiveLimits,
  budget: ArchiveBudget,
): Promise<void> {
  try {
    await readEntries(archive, contents, limits, budget)
  } catch (error) {
    const { message } = error as Error
    const reason = error instanceof TooMuch ? 'LIMIT_EXCEEDED' : 'DAMAGED'
    contents.gaps.push(...gap(archive.path, reason, message.slice(0, 200)).gaps)
  }
}

class TooMuch extends Error {}

async function readEntries(
  { path, bytes, isInner }: Archive,
  contents: Contents,
  limits: ArchiveLimits,
  budget: ArchiveBudget,
): Promise<void> {
  // Names of entries are read as bytes, because an invalid text must not make the archive unreadable.
  const zip = await fromBufferPromise(bytes, { decodeStrings: false })
  let manifest: string | undefined
  let isNoted = false
  for await (const entry of zip.eachEntry()) {
    if (--budget.archiveEntries < 0)
      throw new TooMuch('the Java archives of the image have more entries than the limit')
    if (contents.packages.length >= maxPackages) throw new TooMuch(`the archive has more than ${maxPackages} packages`)
    const name = String(entry.fileName)
    if (pomProperties.test(name)) {
      const found = readPomProperties(path, (await inflate(zip, entry, maxPom, budget)).toString())
      if (found.packages.length > 0) isNoted = true
      contents.packages.push(...found.packages)
      contents.gaps.push(...found.gaps)
    } else if (name === manifestName) {
      manifest = (await inflate(zip, entry, maxManifest, budget)).toString()
    } else if (innerArchive.test(name)) {
      const inner = `${path}!/${name}`
      if (name.length > maxName) throw new TooMuch(`the name of an entry has more than ${maxName} characters`)
      if (isInner)
        contents.gaps.push(...gap(inner, 'UNSUPPORTED', 'archives below the second level of nesting are not read').gaps)
      else await readInner(zip, entry, inner, contents, limits, budget)
    }
  }
  if (isNoted) return
  const found = readManifest(path, manifest ?? '')
  contents.packages.push(...found.packages)
  contents.gaps.push(...found.gaps)
}

async function readInner(
  zip: ZipFile,
  entry: Entry,
  path: string,
  contents: Contents,
  limits: ArchiveLimits,
  budget: ArchiveBudget,
): Promise<void> {
  let bytes: Buffer
  try {
    bytes = await inflate(zip, entry, limits.innerArchiveBytes, budget)
  } catch (error) {
    const reason = error instanceof TooMuch ? 'LIMIT_EXCEEDED' : 'DAMAGED'
    contents.gaps.push(...gap(path, reason, (error as Error).message.slice(0, 200)).gaps)
    return
  }
  await readArchive({ path, bytes, isInner: true }, contents, limits, budget)
}

/** Decompresses an entry within the limits. The declared size of the entry is not used, because it can be wrong. */
async function inflate(zip: ZipFile, entry: Entry, most: number, budget: ArchiveBudget): Promise<Buffer> {
  const stream = await zip.openReadStreamPromise(entry)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length
    budget.inflatedBytes -= chunk.length
    if (size > most) throw new TooMuch(`an entry has more than ${most} bytes`)
    if (budget.inflatedBytes < 0) throw new TooMuch('the Java archives of the image have more bytes than the limit')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

/** Reads the `pom.properties` file that Maven writes into its archives. */
function readPomProperties(path: string, text: string): Found {
  const fieldNamed = (key: string): string => fieldOf(text, key, '=:')
  const [group, artifact] = [fieldNamed('groupId'), fieldNamed('artifactId')]
  const version = addQualifier(path, artifact, fieldNamed('version'))
  return identified('maven', path, group && artifact && `${group}:${artifact}`, version)
}

/**
 * Version with the qualifier in the file name. The properties can lack the qualifier, as for `mssql-jdbc-12.10.2.jre11.jar`. A
 * part after a hyphen is a classifier and not part of the version.
 */
function addQualifier(path: string, artifact: string, version: string): string {
  const file = path.slice(path.lastIndexOf('/') + 1).replace(innerArchive, '')
  const start = `${artifact}-${version}`
  const rest = version !== '' && file.startsWith(start) ? file.slice(start.length) : ''
  // Only known qualifiers are added. Other words could hide that a version is affected: 2.14.1.patched is higher than 2.14.1.
  return /^\.(?:(?:jre|jdk|java|android|sp)\d{0,3}|final|ga|release)$/i.test(rest) ? `${version}${rest}` : version
}

/**
 * Splits a name such as `guava-31.1-jre` into artifact and version. The version begins at the first hyphen with a digit after it
 * that can begin a version.
 */
function splitFileName(file: string): { artifact?: string; version?: string } {
  if (file.length > 255) return {}
  let start = file.length
  while (start > 1 && /[\w.+-]/.test(file[start - 1]!)) start--
  const hyphen = file.slice(start).search(/-\d/)
  return hyphen < 0 ? {} : { artifact: file.slice(0, start + hyphen), version: file.slice(start + hyphen + 1) }
}

/** Reads the package from the file name and the manifest, if the archive has no `pom.properties`. */
function readManifest(path: string, text: string): Found {
  const file = path.slice(path.lastIndexOf('/') + 1).replace(innerArchive, '')
  const { artifact: artifactOfFile, version: versionOfFile } = splitFileName(file)
  const [main = ''] = text.replace(/\r\n?/g, '\n').replace(/\n /g, '').split('\n\n', 1)
  const fieldNamed = (key: string): string => fieldOf(main, key)
  const symbolic = fieldNamed('Bundle-SymbolicName').split(';', 1)[0]!.trim()
  const title = fieldNamed('Implementation-Title')
  const artifact = artifactOfFile ?? (/^[\w.-]+$/.test(title) ? title : symbolic.slice(symbolic.lastIndexOf('.') + 1))
  const version = versionOfFile ?? (fieldNamed('Implementation-Version') || fieldNamed('Bundle-Version'))
  const group = fieldNamed('Implementation-Vendor-Id') || symbolic.slice(0, Math.max(0, symbolic.lastIndexOf('.')))
  const isNamed = /^[\w.-]+$/.test(group) && /^[\w.-]+$/.test(artifact) && /^\S+$/.test(version)
  if (!isNamed) return gap(path, 'UNIDENTIFIED', 'the archive has no group, name and version')
  // The real Maven group may differ, and then other advisories apply.
  const guessed = `the archive has no Maven group, and ${group} was assumed`.slice(0, 200)
  const { packages, gaps } = identified('maven', path, `${group}:${artifact}`, version)
  return { packages, gaps: [...gaps, ...gap(path, 'UNIDENTIFIED', guessed).gaps] }
}
