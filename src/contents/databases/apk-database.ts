import { type PackageList, Unreadable } from '../packages.ts'
import { linesOf } from './lines.ts'
import type { Owners } from './owners.ts'

/** Adds what `lib/apk/db/installed` lists: records of one-letter fields, an empty line after each. */
export function readApkDatabase(text: string, list: PackageList, owners?: Owners): void {
  let fields: Record<string, string> = {}
  let folder = ''
  for (const line of linesOf(text)) {
    if (line === '') {
      addRecord(fields, list)
      fields = {}
      folder = ''
    } else {
      // A database with one broken line may lack any package, and what is lacking would count as removed.
      if (line[1] !== ':' || !/^[A-Za-z]/.test(line)) throw new Unreadable('DAMAGED', 'the apk database is damaged')
      fields[line[0]!] ??= line.slice(2)
      // Folders and the files in them, after the fields of the package.
      if (line[0] === 'F') folder = line.slice(2)
      else if (line[0] === 'R')
        owners?.add(`${folder === '' ? '' : `${folder}/`}${line.slice(2)}`, 'apk', fields.P ?? '')
    }
  }
  addRecord(fields, list)
}

function addRecord(
  { P: name = '', V: version = '', A: arch = '', o: origin }: Record<string, string>,
  list: PackageList,
) {
  if (name === '' || version === '') return
  list.add({ kind: 'apk', name, version, origin: origin || name, originVersion: version, arch })
}
