import { Unreadable } from '../packages.ts'
import { type Entry, entryOf } from './entry.ts'
import { linesOf } from './lines.ts'

const wanted = new Set(['package', 'status', 'version', 'source', 'architecture'])

/**
 * Reads paragraphs in the format of deb822(5) from `var/lib/dpkg/status`, or from one file of `status.d`. Yields one entry for
 * each package that has files on disk.
 */
export function* readDpkgDatabase(text: string): Generator<Entry> {
  let fields: Record<string, string> = {}
  let isStarted = false
  for (const line of linesOf(text)) {
    if (line.trim() === '') {
      if (isStarted) yield* entryIn(fields)
      fields = {}
      isStarted = false
    } else if (line[0] !== ' ' && line[0] !== '\t') {
      const colon = line.indexOf(':')
      const field = line.slice(0, colon)
      if (colon < 1 || /\s/.test(field)) throw new Unreadable('DAMAGED', 'the dpkg database is damaged')
      if (wanted.has(field.toLowerCase())) fields[field.toLowerCase()] ??= line.slice(colon + 1).trim()
      isStarted = true
    }
  }
  if (isStarted) yield* entryIn(fields)
}

/** States in dpkg(1) of packages that have no files on disk except configuration files. */
const states: ReadonlySet<string> = new Set(['not-installed', 'config-files'])

function* entryIn(fields: Record<string, string>): Generator<Entry> {
  const { package: name = '', version = '', architecture: arch = '', source = '', status = '' } = fields
  // Paragraphs of status.d often have no status, because these packages are always installed.
  if (states.has(status.split(/\s+/)[2]?.toLowerCase() ?? '')) return
  const [, origin = name, originVersion = version] = /^(\S+)(?:\s+\(([^()\s]+)\))?$/.exec(source) ?? []
  const found = { kind: 'deb', name, version, origin, originVersion, arch } as const
  yield entryOf(found, `a dpkg package without ${name === '' ? 'a name' : `a version: ${name.slice(0, 100)}`}`)
}
