// Images of a group that admission policies in dry run would deny.
import type { Call } from '#app.ts'
import { type Checked, checkPolicies } from '#domains/policy/gates/policy-checks.service.ts'
import { toRepoRef } from '#domains/registry/repos/paths.service.ts'
import { AppError } from '#lib/errors.ts'
import { imagesOfDryRun, mostExamples, overviewMs } from './summaries.model.ts'
import { taggedImages } from './tagged-images.service.ts'

export type DryRunPolicy = {
  policyUid: string
  name: string
  scopeUid: string
  examined: number
  denied: number
  examples: string[]
}

export type DryRunOverview = { examined: number; incomplete: boolean; policies: DryRunPolicy[] }

export async function getDryRunOverview(call: Call, group: string): Promise<DryRunOverview> {
  const { images, isCut } = await taggedImages(call, group, imagesOfDryRun)
  const until = performance.now() + overviewMs
  const policies = new Map<string, DryRunPolicy>()
  let [examined, isLate] = [0, false]
  for (const { repo, digest, tag } of images) {
    call.signal.throwIfAborted()
    isLate = performance.now() > until
    if (isLate) break
    const checked = await checkStored(call, repo.uid, digest)
    if (!checked) continue
    examined++
    for (const { gate, denied } of checked.outcomes) {
      if (gate.enforced) continue
      const none = {
        policyUid: gate.uid,
        name: gate.name,
        scopeUid: gate.scopeUid,
        examined: 0,
        denied: 0,
        examples: [],
      }
      const policy: DryRunPolicy = policies.get(gate.uid) ?? none
      policies.set(gate.uid, policy)
      policy.examined++
      if (!denied) continue
      policy.denied++
      if (policy.examples.length < mostExamples) {
        policy.examples.push(`${(await toRepoRef(call.app.db, repo)).path}:${tag}`)
      }
    }
  }
  const sorted = [...policies.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  return { examined, incomplete: isCut || isLate, policies: sorted }
}

/** Undefined if the image is not stored, such as that of an imported history, or was deleted meanwhile. */
async function checkStored(call: Call, repoUid: string, digest: string): Promise<Checked | undefined> {
  try {
    return await checkPolicies(call, repoUid, { tag: '', digest })
  } catch (error) {
    if (error instanceof AppError && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}
