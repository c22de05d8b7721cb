// Whether something has been a tag for long enough, for whoever asks that of everybody who pulls it.
import type { Work } from '#app.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { defaultHold } from '../views/views.model.ts'
import { Passing } from './bound-pulls.service.ts'
import type { PullRule } from './pull-rules.model.ts'

const dayMs = 86_400_000

/** As a rule of pulls for all tags would have it that counts stays under any tag of the repo. */
export async function hasCooled(work: Work, repo: RepoRef, digest: string, days: number): Promise<boolean> {
  const rule: PullRule = {
    ...{ uid: '', scopeUid: repo.uid, name: '', tags: [], exceptTags: [], identities: [], belowGroup: '' },
    ...{ mode: 'DENY', createTime: '', updateTime: '' },
    age: { ms: days * dayMs, hold: defaultHold, countFrom: 'repo' },
  }
  return new Passing(work, repo, [rule], []).manifest(digest)
}
