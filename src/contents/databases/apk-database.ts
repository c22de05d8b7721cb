import { Unreadable } from '../packages.ts'
import { type Entry, entryOf } from './entry.ts'
import { linesOf } from './lines.ts'
import type { Owners } from './owners.ts'

/** Records of `lib/apk/db/installed`, of one-letter fields with an empty line after each: an entry for each. */
export function* readApkDatabase(text: string, owners?: Owners): Generator<Entry> {
  let fields: Record<string, string> = {}
  let folder = ''
  let isStarted = false
  for (const line of linesOf(text)) {
    if (line === '') {
      if (isStarted) yield entryIn(fields)
      fields = {}
      folder = ''
      isStarted = false
    } else {
      // A database with one broken line may lack any package, and a missing package would count as removed.
      if (line[1] !== ':' || !/^[A-Za-z]/.test(line)) throw new Unreadable('DAMAGED', 'the apk database is damaged')
      isStarted = true
      fields[line[0]!] ??= line.slice(2)
      // Folders and the files in them, after the fields of the package.
      if (line[0] === 'F') folder = line.slice(2)
      else if (line[0] === 'R')
        owners?.add(`${folder === '' ? '' : `${folder}/`}${line.slice(2)}`, 'apk', fields.P ?? '')
    }
  }
  if (isStarted) yield entryIn(fields)
}

function entryIn({ P: name = '', V: version = '', A: arch = '', o: origin }: Record<string, string>): Entry {
  const found = { kind: 'apk', name, version, origin: origin || name, originVersion: version, arch } as const
  return entryOf(found, `an apk package without ${name === '' ? 'a name' : `a version: ${name.slice(0, 100)}`}`)
}
