// What anybody may pull: the free tags of the public organisation, and all that they ever served.
import type { Reader } from '#db/sql.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import { wasEverTagged } from './tag-history.service.ts'
import { wasNeeded } from './tag-history.store.ts'

/** [S] 5.B: free-tier public images. */
export const freeTags: readonly string[] = ['latest', 'latest-dev']

/** Whether a free tag of the repo ever carried this manifest, or one that needs this manifest or blob. */
export async function isFree(reader: Reader, repo: RepoRef, digest: string): Promise<boolean> {
  return (await wasEverTagged(reader, repo, digest, freeTags)) || (await wasNeeded(reader, repo, digest, freeTags))
}
