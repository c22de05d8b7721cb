// Reader of Debian's security tracker, https://security-tracker.debian.org/tracker/data/json. The data is sorted by source
// package, vulnerability and release. It is one document of a hundred megabytes, which is read one package at a time.
import type { AffectedPackage, SourceRecord } from '#domains/scanning/records/records.model.ts'
import { levelOf } from './severities.ts'
import { type Json, lineOf, objectAt, parseJson, textAt } from './values.ts'

/**
 * Numbers of Debian releases by codename. The tracker uses codenames, OSV uses numbers. Unstable has no number, and no image has
 * it as its release.
 */
const releases: Readonly<Record<string, string>> = {
  jessie: '8',
  stretch: '9',
  buster: '10',
  bullseye: '11',
  bookworm: '12',
  trixie: '13',
  forky: '14',
}

/** Reads the records of one source package. `text` is the JSON of the package. Throws WrongRecord if the JSON is invalid. */
export function readTrackerPackage(name: string, text: string): SourceRecord[] {
  const entries = Object.entries(objectAt(parseJson(text), name))
  return entries.map(([id, value]) => recordOf(name, id, objectAt(value, `${name}.${id}`)))
}

/** The record's ID contains the package name, because several packages can have the same vulnerability. */
function recordOf(name: string, id: string, value: Json): SourceRecord {
  const byRelease = objectAt(value.releases ?? {}, `${name}.${id}.releases`)
  return {
    id: `${id}/${name}`,
    aliases: [],
    upstream: [id],
    summary: lineOf(textAt(value.description, `${name}.${id}.description`)),
    publishTime: '',
    modifyTime: '',
    withdrawTime: '',
    severities: [],
    references: [`https://security-tracker.debian.org/tracker/${encodeURIComponent(id)}`],
    affected: Object.entries(byRelease).flatMap(([release, state]) => {
      const number = Object.hasOwn(releases, release) ? releases[release]! : undefined
      const path = `${name}.${id}.releases.${release}`
      return number === undefined ? [] : [affectedOf(name, number, objectAt(state, path), path)]
    }),
  }
}

function affectedOf(name: string, release: string, state: Json, path: string): AffectedPackage {
  const fixed = textAt(state.fixed_version, `${path}.fixed_version`)
  const urgency = textAt(state.urgency, `${path}.urgency`)
  const isResolved = state.status === 'resolved'
  const given = isResolved && fixed === '0' ? 'not_affected' : 'affected'
  const ignored = !isResolved && (urgency === 'end-of-life' || state.nodsa_reason === 'ignored')
  const events = isResolved && fixed !== '' && fixed !== '0' ? [{ introduced: '0' }, { fixed }] : [{ introduced: '0' }]
  const word = state.status === 'undetermined' ? 'undetermined' : urgency
  return {
    ecosystem: `Debian:${release}`,
    name,
    ranges: [{ type: 'ECOSYSTEM', events }],
    versions: [],
    state: ignored ? 'wont_fix' : given,
    severity: levelOf(urgency),
    qualifiers: word === '' || word === 'not yet assigned' ? {} : { urgency: word },
  }
}
