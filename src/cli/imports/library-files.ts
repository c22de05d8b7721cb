// Reader of library files, which have `ecosystem` and `packages` with versions. A version is text, or an object with properties.
// For Java, each file of a version may be a separate entry.

import { parseUniqueJson } from '#lib/json/unique-json.ts'
import { type Json, listAt, objectAt, sizeAt, textAt, timeAt, WrongValue } from '../framework/json-values.ts'
import { withoutMark } from '../framework/user-files.ts'
import type { ImportRecord, Problem } from './import-batches.ts'
import { lineIn, linesOf } from './json-lines.ts'
import { type LibraryRecord, type VersionFile, versionOf } from './library-record.ts'

type LibraryFile = {
  records: ImportRecord[]
  problems: Problem[]
  /** Number of entries in the file, including invalid entries. */
  packages: number
  versions: number
}

/** For each version of the record, its position in the file. */
type Read = { record: LibraryRecord; positions: number[] }

/** Reads a file. A package with an error is left out as a whole. A file in another format is one problem. */
export function readLibraries(file: string, text: string): LibraryFile {
  const found: LibraryFile = { records: [], problems: [], packages: 0, versions: 0 }
  let lines: Map<string, number> | undefined
  const lineAt = (path: string) => {
    lines ??= linesOf(text)
    return lineIn(lines, path)
  }
  const refuse = (line: number, field: string, description: string) =>
    void found.problems.push({ file, line, field, description })

  let document: Json
  try {
    document = objectAt(parseUniqueJson(withoutMark(text)), '')
  } catch (error) {
    const [, line = 1] = /\(line (\d+) /.exec((error as Error).message) ?? []
    refuse(Number(line), '', error instanceof WrongValue ? error.message : 'is not valid JSON')
    return found
  }
  try {
    const read = readerOf(document.ecosystem)
    const packages = listAt(document.packages, 'packages')
    found.packages = packages.length
    for (const [i, one] of packages.entries()) {
      const at = `packages[${i}]`
      if (Array.isArray((one as Json | null)?.versions)) found.versions += ((one as Json).versions as []).length
      try {
        const { record, positions } = read(objectAt(one, at), at)
        const lineOf = (field: string) => lineAt(pathOf(record, at, positions, field))
        found.records.push({ id: `${file} ${at}`, file, body: record, lineOf })
      } catch (error) {
        if (!(error instanceof WrongValue)) throw error
        refuse(lineAt(error.path), error.path, error.message)
      }
    }
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error
    refuse(lineAt(error.path), error.path, error.message)
  }
  return found
}

function readerOf(ecosystem: unknown): (one: Json, at: string) => Read {
  if (ecosystem === 'python') return readPython
  if (ecosystem === 'java') return readJava
  throw new WrongValue('ecosystem', 'must be java or python')
}

function readPython(one: Json, at: string): Read {
  const name = textAt(one.name, `${at}.name`)
  const versions = listAt(one.versions, `${at}.versions`).map((version, i) => {
    const versionPath = `${at}.versions[${i}]`
    return typeof version === 'string' ? { version } : pythonVersion(objectAt(version, versionPath), versionPath)
  })
  return { record: { ecosystem: 'ECOSYSTEM_PYTHON', name, versions }, positions: versions.map((_, i) => i) }
}

function pythonVersion(one: Json, at: string): LibraryRecord['versions'][number] {
  const files = listAt(one.files ?? [], `${at}.files`).map((file, i): VersionFile => {
    const { size, uploadTime } = objectAt(file, `${at}.files[${i}]`)
    return { size: sizeAt(size, `${at}.files[${i}].size`), time: timeAt(uploadTime, `${at}.files[${i}].uploadTime`) }
  })
  const whole = { size: 0, time: timeAt(one.uploadTime, `${at}.uploadTime`) }
  return versionOf(textAt(one.version, `${at}.version`), [...files, whole])
}

function readJava(one: Json, at: string): Read {
  const name = `${textAt(one.groupId, `${at}.groupId`)}:${textAt(one.artifactId, `${at}.artifactId`)}`
  const description = one.title === undefined ? {} : { description: textAt(one.title, `${at}.title`) }
  const files = new Map<string, { position: number; files: VersionFile[] }>()
  for (const [i, entry] of listAt(one.versions, `${at}.versions`).entries()) {
    const versionPath = `${at}.versions[${i}]`
    const { version, size, releaseTime, firstSeenTime } = objectAt(entry, versionPath)
    const known = files.get(textAt(version, `${versionPath}.version`)) ?? { position: i, files: [] }
    const times = [
      timeAt(releaseTime, `${versionPath}.releaseTime`),
      timeAt(firstSeenTime, `${versionPath}.firstSeenTime`),
    ]
    known.files.push({ size: sizeAt(size, `${versionPath}.size`), time: times.find((time) => time !== '') ?? '' })
    files.set(version as string, known)
  }
  const versions = [...files].map(([version, known]) => ({ ...versionOf(version, known.files), ...description }))
  return {
    record: { ecosystem: 'ECOSYSTEM_JAVA', name, versions },
    positions: [...files.values()].map(({ position }) => position),
  }
}

/** Path in the file of a field of the record. */
function pathOf({ ecosystem }: LibraryRecord, at: string, positions: readonly number[], field: string): string {
  const [, index, member] = /^versions\[(\d+)\](?:\.(\w+))?/.exec(field) ?? []
  if (member === 'description') return `${at}.title`
  if (index !== undefined) return `${at}.versions[${positions[Number(index)]}]${member === 'version' ? '.version' : ''}`
  if (field === 'name') return `${at}.${ecosystem === 'ECOSYSTEM_JAVA' ? 'groupId' : 'name'}`
  return field === '' ? at : `${at}.${field}`
}
