import { type PackageList, Unreadable } from '../packages.ts'
import { linesOf } from './lines.ts'

const wanted = new Set(['package', 'status', 'version', 'source', 'architecture'])

/** Adds what `var/lib/dpkg/status`, or one file of `status.d`, lists as installed: paragraphs as in deb822(5). */
export function readDpkgDatabase(text: string, list: PackageList): void {
  let fields: Record<string, string> = {}
  for (const line of linesOf(text)) {
    if (line.trim() === '') {
      addRecord(fields, list)
      fields = {}
    } else if (line[0] !== ' ' && line[0] !== '\t') {
      const colon = line.indexOf(':')
      const field = line.slice(0, colon)
      if (colon < 1 || /\s/.test(field)) throw new Unreadable('DAMAGED', 'the dpkg database is damaged')
      if (wanted.has(field.toLowerCase())) fields[field.toLowerCase()] ??= line.slice(colon + 1).trim()
    }
  }
  addRecord(fields, list)
}

function addRecord(fields: Record<string, string>, list: PackageList): void {
  const { package: name = '', version = '', architecture: arch = '', source = '', status } = fields
  if (name === '' || version === '') return
  // Files of status.d often say no status, being there because the package is.
  if (status !== undefined && status.split(/\s+/)[2] !== 'installed') return
  const [, origin = name, originVersion = version] = /^(\S+)(?:\s+\(([^()\s]+)\))?$/.exec(source) ?? []
  list.add({ kind: 'deb', name, version, origin, originVersion, arch })
}
