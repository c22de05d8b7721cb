// Finds the VEX statements on each finding of an image. Documents can be very long. So the number of statements is limited, and
// long work yields to other requests.
import type { Call } from '#app.ts'
import { patternOf } from '#contents/package-pattern.ts'
import { aboutImage } from '#contents/reports/vex-about.ts'
import { contentsOf } from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { firstInBoth } from '#lib/first-in-both.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import { listStatements, type Statement } from './statements.service.ts'

/** Limits on the statements for one finding and for all findings of an image. */
const most = { each: 20, all: 5000 }

/** A vulnerability with all of its names, in a package. */
export type FindingQuery = { names: readonly string[]; component: { kind: string; name: string; version: string } }

/** The newest statements on each finding, in the order of the findings. Use `listStatements` for statements beyond the limits. */
export async function statementsFor(
  call: Call,
  repoUid: string,
  digest: string,
  findings: readonly FindingQuery[],
): Promise<Statement[][]> {
  const all = findings.length === 0 ? [] : await listStatements(call, repoUid, digest)
  if (all.length === 0) return findings.map(() => [])
  const walk = new Walk({ steps: Number.POSITIVE_INFINITY, bytes: 0 }, call.signal, () => new Error('unlimited'))
  const statementIndex = await indexOf(all, { digest, distribution: await distributionOf(call, repoUid, digest), walk })
  const told: Statement[][] = []
  let left = most.all
  for (const { names, component } of findings) {
    await walk.pause()
    if (left === 0) {
      told.push([])
      continue
    }
    const named = names.flatMap((name) => statementIndex.named.get(name) ?? [])
    const about = [
      statementIndex.ofImage,
      ...[component.version, ''].flatMap(
        (version) => statementIndex.ofPackages.get(keyOf({ ...component, version })) ?? [],
      ),
    ]
    const numbers = firstInBoth(named, about, Math.min(most.each, left))
    left -= numbers.length
    told.push(numbers.map((number) => all[number]!))
  }
  return told
}

/** Indexes of statements: by vulnerability name, statements on the whole image, and statements on a package. */
type StatementIndex = { named: Map<string, Set<number>>; ofImage: Set<number>; ofPackages: Map<string, Set<number>> }

async function indexOf(
  all: readonly Statement[],
  { digest, distribution, walk }: { digest: string; distribution: string; walk: Walk },
): Promise<StatementIndex> {
  const statementIndex: StatementIndex = { named: new Map(), ofImage: new Set(), ofPackages: new Map() }
  for (const [number, one] of all.entries()) {
    await walk.pause()
    const { image, parts } = aboutImage(one, digest)
    for (const name of [one.vulnerability, ...one.aliases]) addStatement(statementIndex.named, name, number)
    if (image) statementIndex.ofImage.add(number)
    for (const part of parts) {
      const pattern = patternOf(part)
      if (pattern && (pattern.distribution === '' || pattern.distribution === distribution))
        addStatement(statementIndex.ofPackages, keyOf(pattern), number)
    }
  }
  return statementIndex
}

const keyOf = ({ kind, name, version }: FindingQuery['component']): string => JSON.stringify([kind, name, version])

function addStatement(sets: Map<string, Set<number>>, key: string, number: number): void {
  const set = sets.get(key) ?? new Set()
  sets.set(key, set.add(number))
}

async function distributionOf({ app: { db } }: Call, repoUid: string, digest: string): Promise<string> {
  const repo = await findRepoByUid(db, repoUid)
  const [contents] = repo ? await contentsOf(db, repo.id, [digest]) : []
  return contents?.distribution.id ?? ''
}
