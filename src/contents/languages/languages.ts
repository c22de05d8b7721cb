// Reads packages of languages from single files of an image. Each file is read as a stream, and only its result is kept.
import { projectName } from '#versions/pep503.ts'
import { readRpmDatabase } from '../databases/rpm/rpm-database.ts'
import type { Wanted } from '../layers/layer-files.ts'
import type { Found } from '../packages.ts'
import { readGoProgram } from './go-program.ts'
import { type ArchiveBudget, type ArchiveLimits, readJavaArchive } from './java.ts'
import { fieldOf, gap, identified } from './language-package.ts'

/** The most bytes that are read of a file with its fields at the start, and of a file that has to be read as a whole. */
const maxHead = 64 * 2 ** 10
const maxWhole = 2 * 2 ** 20

export type LanguageFile = Pick<Wanted, 'path' | 'watch'> & {
  /** Size in the header of the archive; the content is never longer. */
  size: number
  content: AsyncIterable<unknown>
}

/** `rpmBytes`: of the largest database of rpm that is read. */
export type FileLimits = ArchiveLimits & { rpmBytes: number }

/** Returns undefined for a file without packages. Reads the content to its end in any case, as the archive around it needs. */
export async function readLanguageFile(
  file: LanguageFile,
  limits: FileLimits,
  budget: ArchiveBudget,
): Promise<Found | undefined> {
  const { path, watch, size, content } = file
  if (watch === 'program') return readGoProgram(path, content)
  if (watch === 'java' && size <= limits.archiveBytes) {
    return readJavaArchive(path, await readHead(content, size), limits, budget)
  }
  if (watch === 'rpm') return readRpm(file, limits.rpmBytes)
  const text = (await readHead(content, watch === 'python' ? maxHead : maxWhole)).toString()
  if (watch === 'java') return gap(path, 'LIMIT_EXCEEDED', `the archive has more than ${limits.archiveBytes} bytes`)
  if (watch === 'python') return readPythonMetadata(path, text)
  if (size > maxWhole) return gap(path, 'LIMIT_EXCEEDED', `the file has more than ${maxWhole} bytes`)
  return watch === 'npm' ? readNpmPackage(path, text) : readGemSpecification(path, text)
}

/** Changes in a log that are not in the database yet are a gap of their own. */
async function readRpm({ path, size, content }: LanguageFile, most: number): Promise<Found | undefined> {
  const isLog = path.endsWith('-wal')
  const bytes = await readWhole(content, isLog || size > most ? 0 : size)
  if (isLog)
    return size === 0 ? undefined : gap(path, 'UNSUPPORTED', 'the write-ahead log of the rpm database is not read')
  if (size > most) return gap(path, 'LIMIT_EXCEEDED', `the rpm database has more than ${most} bytes`)
  return readRpmDatabase(path, bytes)
}

/** The content in memory once, since it may be large. */
async function readWhole(content: AsyncIterable<unknown>, size: number): Promise<Buffer> {
  const whole = Buffer.alloc(size)
  let at = 0
  for await (const chunk of content) {
    whole.set((chunk as Uint8Array).subarray(0, size - at), at)
    at += Math.min((chunk as Uint8Array).length, size - at)
  }
  return whole
}

/** Beginning of the content; the rest is read and dropped. */
async function readHead(content: AsyncIterable<unknown>, most: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of content) {
    if (size < most) chunks.push(chunk as Uint8Array)
    size += (chunk as Uint8Array).length
  }
  return Buffer.concat(chunks).subarray(0, most)
}

/** Core metadata are fields as in mail, and then, after an empty line, a description. */
function readPythonMetadata(path: string, text: string): Found {
  const [head = ''] = text.split(/\r?\n\r?\n/, 1)
  return identified('pypi', path, projectName(fieldOf(head, 'Name')), fieldOf(head, 'Version'))
}

function readNpmPackage(path: string, text: string): Found | undefined {
  let document: unknown
  try {
    document = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    return gap(path, 'DAMAGED', 'the file is not valid JSON')
  }
  const { name, version } = (typeof document === 'object' && document !== null ? document : {}) as Record<
    string,
    unknown
  >
  // Folders of a package may also have such a file, for the way they are loaded.
  if (typeof name !== 'string' || typeof version !== 'string' || name === '' || version === '') return undefined
  return identified('npm', path, name, version.replace(/^[v=]+/, ''))
}

/** A specification is a program; RubyGems itself writes these lines so. */
function readGemSpecification(path: string, text: string): Found {
  const quoted = `(?:%q)?["'({]([^"'(){}\\n]{1,512})["')}]`
  const said = (member: string): string =>
    new RegExp(`^[ \\t]*\\w{1,20}\\.${member}[ \\t]*=[ \\t]*(?:Gem::Version\\.new[ \\t(]{0,5})?${quoted}`, 'm').exec(
      text,
    )?.[1] ?? ''
  return identified('gem', path, said('name'), said('version'))
}
