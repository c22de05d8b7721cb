// Tag history of the example company, as if imported from an earlier registry. Times are relative to now. The digests have no
// content, so they cannot be pulled.
import { hash } from 'node:crypto'

/** Updates of a tag. Each has the new build, and its age in hours. */
type Moves = readonly (readonly [build: string, hoursAgo: number])[]

/** Tag updates by the name of the repository and the name of the tag. */
const demoTags: Readonly<Record<string, Readonly<Record<string, Moves>>>> = {
  jdk: {
    stable: [
      ['jdk 21.0.4', 700],
      ['jdk 21.0.5', 430],
      ['jdk 21.0.6', 262],
      ['jdk 21.0.5', 250],
      ['jdk 21.0.7', 96],
    ],
    candidate: [
      ['jdk 21.0.6', 300],
      ['jdk 21.0.7', 130],
      ['jdk 21.0.8', 20],
    ],
    '21.0.4': [['jdk 21.0.4', 720]],
    '21.0.5': [['jdk 21.0.5', 440]],
    '21.0.6': [['jdk 21.0.6', 300]],
    '21.0.7': [['jdk 21.0.7', 130]],
    '21.0.8': [['jdk 21.0.8', 20]],
  },
  python: {
    latest: [
      ['python 3.12', 600],
      ['python 3.13', 200],
      ['python 3.14', 30],
    ],
    '3.13': [['python 3.13', 200]],
  },
  node: {
    latest: [
      ['node 22', 500],
      ['node 24', 48],
    ],
    lts: [
      ['node 20', 650],
      ['node 22', 120],
    ],
  },
  nginx: {
    stable: [
      ['nginx 1.26', 480],
      ['nginx 1.28', 75],
    ],
  },
}

/** Request that imports the tag history of a repository. Undefined if the repository has no history. */
export function demoHistory(repo: string, uid: string, now: Date): object | undefined {
  const tags = Object.entries(demoTags[repo] ?? {}).map(([name, moves]) => ({
    name,
    records: moves.map(([build, hoursAgo]) => ({
      time: new Date(now.getTime() - hoursAgo * 3_600_000).toISOString(),
      digest: `sha256:${hash('sha256', `example of ${build}`)}`,
    })),
  }))
  return tags.length === 0 ? undefined : { repoUid: uid, tags }
}
