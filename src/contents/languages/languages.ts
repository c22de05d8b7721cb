// Reads packages of languages from single files of an image. Each file is read as a stream, and only its packages are kept in
// memory.
import { projectName } from '#versions/pep503.ts'
import { readRpmDatabase } from '../databases/rpm/rpm-database.ts'
import type { Wanted } from '../layers/layer-files.ts'
import type { Found } from '../packages.ts'
import { readGoProgram } from './go-program.ts'
import { type ArchiveBudget, type ArchiveLimits, readJavaArchive } from './java.ts'
import { fieldOf, gap, identified } from './language-package.ts'

/** Limits on the bytes that are read of a file: of a file with its fields at the start, and of a file that is read completely. */
const maxHead = 64 * 2 ** 10
const maxWhole = 2 * 2 ** 20

export type LanguageFile = Pick<Wanted, 'path' | 'watch'> & {
  /** Size in the header of the image archive. The content is never longer than this size. */
  size: number
  content: AsyncIterable<unknown>
}

/** `rpmBytes` is the size limit of an rpm database. */
export type FileLimits = ArchiveLimits & { rpmBytes: number }

/**
 * Reads the packages of a file. Returns undefined if the file has no packages. Always reads the content to its end, because the
 * reader of the surrounding archive requires this.
 */
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

/** Reads an rpm database that is a single file. */
async function readRpm({ path, size, content }: LanguageFile, most: number): Promise<Found | undefined> {
  const bytes = await readWhole(content, size > most ? 0 : size)
  if (size > most) return gap(path, 'LIMIT_EXCEEDED', `the rpm database has more than ${most} bytes`)
  return readRpmDatabase(path, bytes)
}

/** Reads the first `size` bytes without a second copy in memory, because the content can be large. Discards the rest. */
export async function readWhole(content: AsyncIterable<unknown>, size: number): Promise<Buffer> {
  const whole = Buffer.alloc(size)
  let at = 0
  for await (const chunk of content) {
    whole.set((chunk as Uint8Array).subarray(0, size - at), at)
    at += Math.min((chunk as Uint8Array).length, size - at)
  }
  return whole
}

/** Reads the beginning of the content, and discards the rest. */
async function readHead(content: AsyncIterable<unknown>, most: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of content) {
    if (size < most) chunks.push(chunk as Uint8Array)
    size += (chunk as Uint8Array).length
  }
  return Buffer.concat(chunks).subarray(0, most)
}

/** Reads core metadata of Python. The fields have the format of mail headers, followed by an empty line and a description. */
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
  // Subfolders of a package can also contain a package.json. Such a file only configures how modules are loaded.
  if (typeof name !== 'string' || typeof version !== 'string' || name === '' || version === '') return undefined
  return identified('npm', path, name, version.replace(/^[v=]+/, ''))
}

/** Reads a gem specification. The specification is a Ruby program, but RubyGems always writes these lines in the same form. */
function readGemSpecification(path: string, text: string): Found {
  const quoted = `(?:%q)?["'({]([^"'(){}\\n]{1,512})["')}]`
  const textOfMember = (member: string): string =>
    new RegExp(`^[ \\t]*\\w{1,20}\\.${member}[ \\t]*=[ \\t]*(?:Gem::Version\\.new[ \\t(]{0,5})?${quoted}`, 'm').exec(
      text,
    )?.[1] ?? ''
  return identified('gem', path, textOfMember('name'), textOfMember('version'))
}
