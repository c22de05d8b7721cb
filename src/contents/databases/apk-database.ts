import { Unreadable } from '../packages.ts'
import { type Entry, entryOf } from './entry.ts'
import { linesOf } from './lines.ts'
import type { Owners } from './owners.ts'

/**
 * Reads `lib/apk/db/installed`. Each record has one-letter fields and ends with an empty line. Yields one entry for each record.
 */
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
      // If one line is damaged, packages may be missing. A missing package would look like a removed package, so the whole
      // database is refused.
      if (line[1] !== ':' || !/^[A-Za-z]/.test(line)) throw new Unreadable('DAMAGED', 'the apk database is damaged')
      isStarted = true
      fields[line[0]!] ??= line.slice(2)
      // After the fields of a package, the record lists its folders and their files.
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
