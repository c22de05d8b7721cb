// Reader of an index of Python packages: PEP 691 with the sizes and times of PEP 700.
import { pep440Key } from '#versions/pep440.ts'
import { projectName, projectNamePattern } from '#versions/pep503.ts'
import { listAt, objectAt, sizeAt, textAt, timeAt, WrongValue } from '../framework/json-values.ts'
import { type LibraryRecord, type VersionFile, versionOf } from './library-record.ts'

export const indexFormat = 'application/vnd.pypi.simple.v1+json'

/** Reads the names of all projects in an index. Each name is normalized and occurs once. */
export function readProjects(document: unknown): string[] {
  const projects = listAt(objectAt(document, '').projects, 'projects')
  const names = projects.map((one, i) => {
    const name = textAt(objectAt(one, `projects[${i}]`).name, `projects[${i}].name`)
    if (!projectNamePattern.test(name)) throw new WrongValue(`projects[${i}].name`, 'must be the name of a project')
    return projectName(name)
  })
  return [...new Set(names)]
}

/** Reads one project of the index. Ignores files that belong to no version, such as installers. */
export function readProject(name: string, document: unknown): LibraryRecord {
  const { name: told, files, versions } = objectAt(document, '')
  if (projectName(textAt(told, 'name')) !== name) throw new WrongValue('name', `must be ${name}`)
  const spellings = spellingsOf(versions)
  const found = new Map<string, VersionFile[]>()
  for (const [i, one] of listAt(files, 'files').entries()) {
    const file = objectAt(one, `files[${i}]`)
    const size = sizeAt(file.size, `files[${i}].size`)
    const time = timeAt(file['upload-time'], `files[${i}].upload-time`)
    const written = versionOfFile(name, textAt(file.filename, `files[${i}].filename`))
    if (written === undefined) continue
    const version = spellings.get(pep440Key(written)) ?? written
    const of = found.get(version) ?? []
    of.push({ size, time })
    found.set(version, of)
  }
  return {
    ecosystem: 'ECOSYSTEM_PYTHON',
    name,
    versions: [...found].map(([version, of]) => versionOf(version, of)),
  }
}

/** The index's spelling of each version, by the version's order key. File names may spell a version differently. */
function spellingsOf(versions: unknown): Map<string, string> {
  const listed = listAt(versions ?? [], 'versions').map((version, i) => textAt(version, `versions[${i}]`))
  return new Map(listed.map((version) => [pep440Key(version), version]))
}

/** Reads the version in the name of a wheel, an egg or a source archive of the project. Returns undefined for any other file. */
export function versionOfFile(project: string, filename: string): string | undefined {
  const [, stem = '', ending] = /^(.+)\.(whl|egg|tar\.gz|tar\.bz2|tar\.xz|tgz|zip)$/.exec(filename) ?? []
  if (ending === undefined) return undefined
  if (ending === 'whl' || ending === 'egg') {
    const [name = '', version, ...tags] = stem.split('-')
    return projectName(name) === project && tags.length >= 1 ? version : undefined
  }
  // A dash may be part of the project's name and, in old files, of the version.
  for (let dash = stem.indexOf('-'); dash > 0; dash = stem.indexOf('-', dash + 1)) {
    if (projectName(stem.slice(0, dash)) === project) return stem.slice(dash + 1) || undefined
  }
  return undefined
}
