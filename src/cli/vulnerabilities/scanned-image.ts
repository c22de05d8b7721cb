// Helpers that the commands for vulnerabilities and packages share.
import type { CoverageGapJson, ResultCoverageJson } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import type { VulnerableImageJson } from '#gen/pinfold/control/scanning/v1/images_pb.ts'
import { chunks } from '#lib/chunks.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import type { ApiReader, Query } from '../framework/api-reader.ts'
import type { OptionSpec, Options } from '../framework/command.ts'
import type { ListReader } from '../framework/list-command.ts'
import { groupOf } from '../framework/names.ts'
import { registryOf } from '../framework/session.ts'
import { findTag, imageNamed, noTag, pathsOf, type Repo } from '../registry/image-names.ts'

/** Image in a list of the API. */
export type FoundImage = Pick<VulnerableImageJson, 'repoUid' | 'digest' | 'tags' | 'moreTags'>

/**
 * Repository and digest of the image that an argument names: `acme/app:1.0`, `acme/app@sha256:…`, or `acme/app` for the tag
 * latest.
 */
export async function digestOf(api: ApiReader, text: string): Promise<{ repo: string; digest: string }> {
  const [name = '', digest] = text.split('@')
  const { path, tag = 'latest', repo } = await imageNamed(api, name)
  if (digest !== undefined) return { repo, digest }
  const found = (await findTag(api, repo, tag))?.digest
  if (found) return { repo, digest: found }
  throw noTag(path, tag)
}

export const scopeOption: OptionSpec = {
  flags: '--in <group>',
  summary: 'Only images of this organization or folder: ORG, ORG/FOLDER or a uid',
  former: ['--group <group>'],
}

/** Uid of the group in `--in`. Undefined without the option. */
export async function scopeOf(api: ApiReader, { in: group }: Options): Promise<string | undefined> {
  return group === undefined ? undefined : groupOf(api, String(group))
}

const idsPerRequest = 50

/** Names by which each image can be pulled: its tags, or its digest if it has no tag. */
export async function namesOfImages(api: ApiReader, images: readonly FoundImage[]): Promise<string[]> {
  const repos: Repo[] = []
  for (const some of chunks([...new Set(images.map(({ repoUid = '' }) => repoUid))], idsPerRequest)) {
    repos.push(...(await api.list<Repo>('/registry/v2/repos', 'repos', { 'uidp.ids': some })).items)
  }
  const paths = await pathsOf(api, repos)
  return images.map(({ repoUid = '', digest, tags = [], moreTags }) => {
    const path = `${registryOf(api.session)}/${paths.get(repoUid) ?? repoUid}`
    return tags.length === 0 ? `${path}@${digest}` : `${path}:${tags.join(',')}${moreTags ? ',…' : ''}`
  })
}

/** Prints the coverage gaps, since without them the results look complete. */
export function printGaps(say: (line: string) => void, gaps: readonly CoverageGapJson[], of = ''): void {
  for (const { reason, subject, message } of gaps) {
    const about = [subject, message].filter(Boolean).join(': ')
    say(plain(`not scanned${of}: ${about} (${reason})`))
  }
}

/** Number of images with coverage gaps. If `moreUnknownImages` is true, there may be more such images. */
type Unknown = { unknownImages: number; moreUnknownImages: boolean }

type ListedImages<T> = {
  items: T[]
  more: boolean
  unknown: Unknown
  coverage: ResultCoverageJson | undefined
  gaps: readonly CoverageGapJson[]
}

/** Reads a list of images. Its first page also has the number of images with coverage gaps. */
export async function imagesOf<T extends FoundImage>(
  api: ListReader,
  path: string,
  query: Query,
): Promise<ListedImages<T>> {
  const { items, more, first } = await api.selected<T>(path, 'images', query)
  const { unknownImages = 0, moreUnknownImages = false } = first
  return {
    ...{ items, more },
    unknown: { unknownImages: Number(unknownImages), moreUnknownImages: moreUnknownImages === true },
    coverage: first.coverage as ResultCoverageJson | undefined,
    gaps: (first.gaps ?? []) as CoverageGapJson[],
  }
}

export function printUnknown(say: (line: string) => void, { unknownImages, moreUnknownImages }: Unknown): void {
  if (unknownImages === 0 && !moreUnknownImages) return
  const many = moreUnknownImages ? `${unknownImages} or more` : String(unknownImages)
  const count = many === '1' ? '1 image' : `${many} images`
  say(`pinfold: ${count} could not be read completely, so ${many === '1' ? 'it' : 'they'} may be affected too`)
}
