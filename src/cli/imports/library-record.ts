import type {
  ImportedArtifactJson,
  ImportedArtifactVersionJson,
} from '#gen/pinfold/control/libraries/v1/artifacts_pb.ts'
import type { Import } from './import-batches.ts'

/** Library in the form that the server imports. */
export type LibraryRecord = Required<ImportedArtifactJson>

/** One file of a version. If the size or the time is unknown, it is 0 or empty. */
export type VersionFile = { size: number; time: string }

/** Combines the properties of all files of a version. */
export function versionOf(version: string, files: readonly VersionFile[]): ImportedArtifactVersionJson {
  const size = files.reduce((sum, file) => sum + file.size, 0)
  const times = files
    .map(({ time }) => time)
    .filter((time) => time !== '')
    .sort((a, b) => Date.parse(a) - Date.parse(b))
  const [first] = times
  const last = times.at(-1)
  return {
    version,
    ...(size > 0 ? { sizeBytes: String(size) } : {}),
    ...(first === undefined ? {} : { releaseTime: first }),
    ...(last === undefined ? {} : { changeTime: last }),
  }
}

/**
 * Import of libraries, for `sendSome`. The server stores the last library of each request as the progress of the run, so
 * libraries must be sorted by name.
 */
export function importRules(run?: string): Import {
  return {
    what: 'libraries',
    path: '/control/v1/artifacts:import',
    request: (artifacts) => {
      const last = artifacts.at(-1) as LibraryRecord
      return { artifacts, ...(run === undefined ? {} : { run: { id: run, after: last.name } }) }
    },
    member: 'artifacts',
    counts: { versionsCreated: 'new versions', versionsUpdated: 'changed versions' },
  }
}
