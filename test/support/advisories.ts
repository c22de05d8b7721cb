// Random advisories, and a simple filter over all of them. Its result is what a list of the server must return.
import type { Json, Pinfold } from './pinfold.ts'
import type { Random } from './random.ts'

export type Sample = Json & { origin: string; advisory: Json }

export const types = [
  'detection',
  'truePositiveDetermination',
  'fixed',
  'falsePositiveDetermination',
  'analysisNotPlanned',
  'fixNotPlanned',
  'pendingUpstreamFix',
  'patched',
]
export const states = ['PENDING', 'APPROVED', 'REQUEST_CHANGES', 'REJECTED']

const payloads: Record<string, Json> = {
  detection: { scanv1: { scanner: 'grype', component: 'x' } },
  fixed: { fixedVersion: '1.10' },
  falsePositiveDetermination: { type: 'TYPE_INLINE_MITIGATIONS_EXIST', note: 'a note' },
  patched: { patchedVersions: ['1', '2'] },
}

export const day = (n: number) => new Date(Date.UTC(2024, 0, 1) + n * 86_400_000).toISOString()

/** Each value is drawn from a few candidates, so that a filter matches several advisories or none. */
export function sampleAdvisory(random: Random, n: number): Sample {
  const pick = (word: string, of: number) => `${word}-${random.below(of)}`
  const some = (most: number) => Array.from({ length: 1 + random.below(most) }, (_, i) => i)
  const aliases = [...new Set(some(3).map(() => `CVE-2024-${1000 + random.below(40)}`))]
  const events = some(4).map(() => {
    const type = types[random.below(types.length)]!
    return {
      createTime: day(random.below(300)),
      author: pick('author', 4),
      reviewer: random.below(2) === 0 ? '' : pick('reviewer', 3),
      reviewState: `REVIEW_STATE_${states[random.below(states.length)]}`,
      [type]: payloads[type] ?? { note: 'why' },
    }
  })
  return {
    origin: pick('origin', 8),
    advisory: {
      advisoryId: `TST-${String(n).padStart(4, '0')}`,
      ...(random.below(3) === 0 ? { legacyAdvisoryId: pick('OLD', 20) } : {}),
      author: 'somebody',
      artifactName: pick('Package', 12),
      artifactType: ['apk', 'image', 'library'][random.below(3)],
      artifactArchitecture: ['x86_64', 'aarch64', ''][random.below(3)],
      componentName: `github.com/${pick('a%_b', 9)}`,
      componentType: ['go-module', 'python', ''][random.below(3)],
      componentLocation: `/usr/${pick('lib', 6)}`,
      aliases,
      events,
    },
  }
}

type Test = (sample: Sample) => boolean
const typeOf = (event: Json) => types.find((type) => type in event)!
const approved = ({ advisory }: Sample): Json[] =>
  (advisory.events as Json[])
    .toSorted((a, b) => (a.createTime < b.createTime ? -1 : a.createTime > b.createTime ? 1 : 0))
    .filter((event) => event.reviewState === 'REVIEW_STATE_APPROVED')
const anyEvent = (member: string, values: string[]): Test => {
  return ({ advisory }) => (advisory.events as Json[]).some((event) => values.includes(event[member]))
}
const field = (member: string, values: string[]): Test => {
  return ({ advisory }) => values.includes(advisory[member] ?? '')
}
export const filterName = (type: string) => {
  return `EVENT_TYPE_FILTER_${type.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}

/** Meaning of each filter, written in the simplest way. */
export const filters: Record<string, (values: string[]) => Test> = {
  advisory_ids: (values) => field('advisoryId', values),
  legacy_advisory_ids: (values) => field('legacyAdvisoryId', values),
  artifact_names: (values) => field('artifactName', values),
  artifact_types: (values) => field('artifactType', values),
  artifact_architectures: (values) => field('artifactArchitecture', values),
  component_names: (values) => field('componentName', values),
  component_types: (values) => field('componentType', values),
  component_locations: (values) => field('componentLocation', values),
  aliases: (values) => (sample) => (sample.advisory.aliases as string[]).some((alias) => values.includes(alias)),
  origin:
    ([origin]) =>
    (sample) =>
      sample.origin === origin,
  event_review_states: (values) => anyEvent('reviewState', values),
  event_authors: (values) => anyEvent('author', values),
  event_reviewers: (values) => anyEvent('reviewer', values),
  exclude_event_authors: (values) => (sample) => !anyEvent('author', values)(sample),
  event_types: (values) => (sample) =>
    (sample.advisory.events as Json[]).some((event) => values.includes(filterName(typeOf(event)))),
  latest_event_type:
    ([value]) =>
    (sample) => {
      const last = approved(sample).at(-1)
      return last !== undefined && filterName(typeOf(last)) === value
    },
  query:
    ([text]) =>
    ({ advisory }) =>
      [advisory.artifactName, advisory.componentName, ...advisory.aliases].some((one: string) =>
        one.toLowerCase().includes(text!.toLowerCase()),
      ),
}

/** Imports the advisories as the operator. */
export async function importSamples({ operator }: Pinfold, parent: string, samples: readonly Sample[]): Promise<Json> {
  let answer: Json = {}
  for (let i = 0; i < samples.length; i += 100) {
    const advisories = samples.slice(i, i + 100)
    const { status, body, text } = await operator.post('/control/v1/advisories:import', { parent, advisories })
    if (status !== 200) throw new Error(`the import failed: ${text}`)
    answer = body
  }
  return answer
}
