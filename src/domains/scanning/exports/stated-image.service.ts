// Groups the findings of an image into one statement for each vulnerability and status.
import type { Call } from '#app.ts'
import { findRepoByUid, pathIn } from '#domains/registry/repos/paths.service.ts'
import { found } from '#lib/errors.ts'
import { parentOf } from '#lib/uid.ts'
import { severityRank, worse } from '../findings/severity.model.ts'
import { imageFindings, type ShownFinding, type UncertainFinding } from '../reports/findings.service.ts'
import type { StatedImage, StatedStatus, Statement } from './exports.model.ts'

/** Throws NOT_FOUND if the repository or the image does not exist. */
export async function statedImage(call: Call, repoUid: string, digest: string): Promise<StatedImage> {
  const { db, version } = call.app
  const { findings, uncertain, gaps, coverage } = await imageFindings(call, repoUid, digest)
  const repo = found(await findRepoByUid(db, repoUid), 'registry.pinfold.dev/Repo', repoUid)
  const { host, origin } = new URL(call.url)
  const path = `${host}/${await pathIn(db, parentOf(repoUid), repo.name)}`
  const name = encodeURIComponent(repo.name)
  return {
    digest,
    path,
    purl: `pkg:oci/${name}@${encodeURIComponent(digest)}?repository_url=${path.replaceAll(':', '%3A')}`,
    author: origin,
    time: call.now,
    tool: { name: 'pinfold', version },
    statements: statementsOf([...findings.flatMap(statedFindings), ...uncertain.flatMap(statedUncertain)]),
    ...{ gaps, coverage },
  }
}

type StatedFinding = {
  vulnerability: string
  status: StatedStatus
  note: string
  fixes: string[]
  of: UncertainFinding
}

function statedFindings(one: ShownFinding): StatedFinding[] {
  const { suppressedBy, acceptedBy, fixes } = one
  return one.vulnerabilities.map((vulnerability) => {
    const risk = acceptedBy.find((by) => by.vulnerability === vulnerability)
    if (suppressedBy) {
      const { source, record, purl } = suppressedBy
      const note = `The files belong to the package ${purl}, which is fixed or not affected according to ${record} of ${source}.`
      return { vulnerability, status: 'suppressed', note, fixes, of: one }
    }
    if (risk) {
      const what = risk.signer === '' ? 'Risk accepted' : 'Signer trusted'
      const note = `${what} by ${risk.actor} until ${risk.expireTime}: ${risk.reason}`
      return { vulnerability, status: 'accepted', note, fixes, of: one }
    }
    return { vulnerability, status: 'affected', note: '', fixes, of: one }
  })
}

const uncertainNote = 'The versions cannot be compared, so it is unknown whether the package is vulnerable.'

const statedUncertain = (one: UncertainFinding): StatedFinding[] =>
  one.vulnerabilities.map((vulnerability) => {
    return { vulnerability, status: 'uncertain', note: uncertainNote, fixes: [], of: one }
  })

/** Precedence of statuses if one vulnerability has several in one package. */
const order: readonly StatedStatus[] = ['affected', 'uncertain', 'accepted', 'suppressed']

function statementsOf(all: readonly StatedFinding[]): Statement[] {
  const first = new Map<string, StatedStatus>()
  const keyOf = ({ vulnerability, of }: StatedFinding) => `${vulnerability} ${of.purl}`
  for (const status of order) {
    for (const one of all) if (one.status === status && !first.has(keyOf(one))) first.set(keyOf(one), status)
  }
  const counting = all.filter((one) => first.get(keyOf(one)) === one.status)
  const groups = Map.groupBy(counting, ({ vulnerability, status, note }) =>
    JSON.stringify([vulnerability, status, note]),
  )
  return [...groups.values()]
    .map(statementOf)
    .sort(
      (one, other) =>
        severityRank(other.severity) - severityRank(one.severity) ||
        (one.vulnerability === other.vulnerability ? 0 : one.vulnerability < other.vulnerability ? -1 : 1),
    )
}

const most = { references: 50, locations: 50 }

function statementOf(those: readonly StatedFinding[]): Statement {
  const { vulnerability, status, note } = those[0]!
  const all = those.map(({ of }) => of)
  const records = all.map(({ record }) => record)
  const names = records.flatMap((one) => (one.vulnerabilities.length > 1 ? [] : [one.id, ...one.aliases]))
  const packages = Map.groupBy(all, ({ purl }) => purl)
  return {
    ...{ vulnerability, status, note },
    aliases: [...new Set(names)].filter((name) => name !== vulnerability && !name.includes('/')).sort(),
    summary: records.map(({ summary }) => summary).find((text) => text !== '') ?? '',
    severity: all.map(({ severity }) => severity).reduce(worse),
    cvss: distinct(records.flatMap(({ severities }) => severities)),
    references: [...new Set(records.flatMap(({ references }) => references))].slice(0, most.references),
    records: distinct(
      all.map(({ source, record }) => ({ source, id: record.id.includes('/') ? vulnerability : record.id })),
    ),
    fixes: [...new Set(those.flatMap(({ fixes }) => fixes))].sort(),
    since: all.map(({ foundTime }) => foundTime).reduce((one, other) => (one < other ? one : other)),
    packages: [...packages]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([purl, same]) => {
        const { name, version } = same[0]!.component
        return { purl, name, version, locations: same[0]!.locations.slice(0, most.locations) }
      }),
  }
}

const distinct = <T>(values: readonly T[]): T[] => [
  ...new Map(values.map((value) => [JSON.stringify(value), value])).values(),
]
