// Images of the tags of a group that were updated last. Each image is listed once, with its newest tag.
import type { Call } from '#app.ts'
import { findRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { newestTags } from '#domains/registry/tags/tags.service.ts'
import { parentOf } from '#lib/uid.ts'

export type TaggedImage = { repo: RepoRow; digest: string; tag: string }

/** `isCut` is true if the group has more tags than `most`. */
export async function taggedImages(
  call: Call,
  group: string,
  most: number,
): Promise<{ images: TaggedImage[]; isCut: boolean }> {
  const { db } = call.app
  const tags = await newestTags(db, group, most + 1)
  const repos = new Map<string, RepoRow | undefined>()
  const images = new Map<string, TaggedImage>()
  for (const { uid, name, digest } of tags.slice(0, most)) {
    const repoUid = parentOf(uid)
    if (!repos.has(repoUid)) repos.set(repoUid, await findRepoRow(db, { uid: repoUid }))
    const repo = repos.get(repoUid)
    const key = `${repoUid} ${digest}`
    if (repo && digest !== '' && !images.has(key)) images.set(key, { repo, digest, tag: name })
  }
  return { images: [...images.values()], isCut: tags.length > most }
}
