// Checks admission policies for an image without a pull.
import type { Call } from '#app.ts'
import { pullDigest } from '#domains/registry/manifests/manifests.service.ts'
import { findRepoByUid, toRepoRef } from '#domains/registry/repos/paths.service.ts'
import { tagForPull } from '#domains/registry/tags/tags.service.ts'
import type { Gap } from '#domains/scanning/image-findings/reports.model.ts'
import { gapsOfImage } from '#domains/scanning/reports/image-gaps.service.ts'
import {
  mostListedGaps,
  type ResultCoverage,
  resultCoverage,
  withCoverage,
} from '#domains/scanning/reports/result-coverage.model.ts'
import { isDigest } from '#lib/digest.ts'
import { found, invalid, notFound } from '#lib/errors.ts'
import { isTagName } from '#lib/oci-names.ts'
import { type Outcome, outcomesOf } from './outcomes.service.ts'

/** Result of a policy, with the coverage of the image if the policy is about vulnerabilities. */
export type ExplainedOutcome = Outcome & { coverage: ResultCoverage | undefined; gaps: readonly Gap[] }

export type Checked = { digest: string; outcomes: readonly ExplainedOutcome[] }

/** Checks the policies for an image. Throws NOT_FOUND if the repository, tag or digest does not exist. */
export async function checkPolicies(
  call: Call,
  repoUid: string,
  asked: { tag: string; digest: string },
): Promise<Checked> {
  checkRequest(asked)
  const { db } = call.app
  const row = found(await findRepoByUid(db, repoUid), 'registry.pinfold.dev/Repo', repoUid)
  const repo = await toRepoRef(db, row)
  const digest = asked.digest || (await tagForPull(db, repo, asked.tag))?.digest
  if (!digest) throw notFound('registry.pinfold.dev/Tag', asked.tag)
  if (!(await pullDigest(call, repo, digest))) throw notFound('registry.pinfold.dev/Image', digest)
  const outcomes = await outcomesOf(call, repo, digest)
  const isAbout = outcomes.some(isExplained)
  const gaps = isAbout ? await gapsOfImage(call, repo, digest) : []
  return { digest, outcomes: outcomes.map((one) => explained(one, gaps)) }
}

const isExplained = ({ gate, failed }: Outcome): boolean => gate.kind === 'vulnerabilities' && !failed

/** Adds to a result without findings whether all packages were compared. */
function explained(outcome: Outcome, gaps: readonly Gap[]): ExplainedOutcome {
  if (!isExplained(outcome)) return { ...outcome, coverage: undefined, gaps: [] }
  const coverage = resultCoverage(gaps, outcome.unknownSeverity, { policy: true })
  const reason = reasonOf(outcome, coverage)
  return { ...outcome, reason, coverage, gaps: gaps.slice(0, mostListedGaps) }
}

/** Reason of a result. A pending result means that the image was not scanned yet. The coverage summary already says this. */
function reasonOf({ denied, pending, reason }: Outcome, coverage: ResultCoverage): string {
  if (denied) return reason
  return pending ? coverage.summary : withCoverage(reason, coverage)
}

function checkRequest({ tag, digest }: { tag: string; digest: string }): void {
  if (tag === '' && digest === '') throw invalid({ field: 'digest', description: 'is required, unless `tag` is set' })
  if (tag !== '' && digest !== '') throw invalid({ field: 'tag', description: 'cannot be combined with `digest`' })
  if (tag !== '' && !isTagName(tag)) throw invalid({ field: 'tag', description: 'is not a valid tag' })
  if (digest !== '' && !isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
}
