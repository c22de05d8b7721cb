// What gates say of a pull. They go by what scanning knows, and are for everybody who pulls.
import type { Work } from '#app.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { type Outcome, outcomesOf } from './outcomes.service.ts'

export type { Outcome } from './outcomes.service.ts'

/** What each gate of the place says, and the first that refuses. Nothing is asked of the database where there is no gate. */
export async function gatesOf(
  work: Work,
  repo: RepoRef,
  digest: string,
): Promise<{ outcomes: readonly Outcome[]; refusing: Outcome | undefined }> {
  const outcomes = await outcomesOf(work, repo, digest)
  return { outcomes, refusing: outcomes.find(({ gate, denied }) => gate.enforced && denied) }
}
