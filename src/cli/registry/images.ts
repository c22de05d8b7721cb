// Commands that list images, their referrers and their pulls.
import type {
  DigestPullerJson,
  DigestPullsJson,
  ReferrerJson,
  UnpulledDigestJson,
} from '#gen/pinfold/control/registry/v1/digests_pb.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader, Query } from '../framework/api-reader.ts'
import { type Options, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { findIdentity, groupOf, namesOf } from '../framework/names.ts'
import { listFormats, outputOf, printList, type View, v1 } from '../framework/outputs.ts'
import { registryOf } from '../framework/session.ts'
import { imageNamed, noTag, pathsOf, type Repo } from './image-names.ts'
import { withDigest } from './image-options.ts'

type Image = Repo & { image: string }

const view: View<Image> = {
  word: 'IMAGE',
  columns: {
    IMAGE: ({ image }) => image,
    UPDATED: ({ updateTime }) => updateTime,
    ABOUT: ({ description }) => description,
  },
  more: { UID: ({ uid }) => uid },
  label: ({ image }) => image,
  at: ({ image }) => image,
  // JSON has the member names of both API versions, since scripts use either.
  json: (image) => ({ ...image, ...v1()(image) }),
}

export const imagesList = listCommand({
  options: [
    {
      flags: '--in <group>',
      summary: 'Only images of this organization or folder: ORG, ORG/FOLDER or a uid',
      former: ['--group <group>'],
    },
    outputOf(listFormats),
  ],
  async run(api, options, terminal) {
    const group = options.in === undefined ? undefined : await groupOf(api, String(options.in))
    const query: Query = { 'uidp.descendants_of': group }
    const { items, more } = await api.selected<Repo>('/registry/v2/repos', 'repos', query)
    const paths = await pathsOf(api, items)
    const images = items.map((repo) => ({ ...repo, image: `${registryOf(api.session)}/${paths.get(repo.uid)}` }))
    const shown = api.isOrdered ? images : images.sort((a, b) => (a.image < b.image ? -1 : 1))
    printList(terminal, options.output, view, shown, await namesOf(api, {}))
    return { more }
  },
})

const image = {
  name: '<image>',
  summary: 'Image: acme/team/app:1.0 or acme/app@sha256:…; default tag: latest',
}
const digestOption = { flags: '--digest <digest>', summary: 'Digest of the image, instead of a tag: sha256:…' }

/** Digest of the image in the options, and the API path of the image. */
async function digestOf(api: ApiReader, asked: Options) {
  const options = withDigest(asked)
  const { path, repo, tag = 'latest' } = await imageNamed(api, options.image)
  const given = options.digest as string | undefined
  const where = `/registry/v2/repos/${repo}`
  const resolved = given ? {} : await api.call('GET', `${where}/resolvedTags/${encodeURIComponent(tag)}`)
  const digest = given ?? (resolved as { chosen?: { digest: string } }).chosen?.digest
  if (digest === undefined) throw noTag(path, tag)
  return `${where}/digests/${encodeURIComponent(digest)}`
}

export const imagesReferrers = listCommand({
  arguments: [image],
  options: [digestOption, outputOption],
  async run(api, options) {
    const at = await digestOf(api, options)
    const { items, more } = await api.selected<ReferrerJson>(`${at}/referrers`, 'referrers', {})
    const rows = items.map((one) => [one.digest, one.artifactType, one.mediaType, one.size ?? '0'])
    return { json: { items }, head: ['DIGEST', 'ARTIFACT TYPE', 'MEDIA TYPE', 'BYTES'], rows, more }
  },
})

export const imagesPulls = apiCommand({
  arguments: [image],
  options: [digestOption, outputOption],
  async run(api, options, { say }) {
    const at = await digestOf(api, options)
    const found = (await api.call('GET', `${at}/pulls`)) as DigestPullsJson
    const rows = (found.pullers ?? []).map((one) => [one.lastTime, nameOf(one), one.gets ?? '0', one.checks ?? '0'])
    if (rows.length === 0) say(`pinfold: no identities are recorded; last recorded pull: ${found.lastTime ?? 'none'}`)
    return { json: found, head: ['LAST', 'BY', 'PULLS', 'HEAD REQUESTS'], rows }
  },
})

function nameOf({ caller = '', callerName = '' }: Pick<DigestPullerJson, 'caller' | 'callerName'>): string {
  if (caller === '') return 'not signed in'
  return caller === '*' ? 'other callers' : callerName || caller
}

export const imagesUnpulled = listCommand({
  details: `Deletes nothing. Only pulls are counted: a node that already has an image runs it without a pull, so an image in use can be in
this list. A HEAD request does not count as a pull.
SAFE is "yes" if nothing protects the manifest from deletion and no index of the repository contains it.`,
  arguments: [{ name: '<repository>', summary: 'Repository, such as acme/team/app' }],
  options: [
    { flags: '--days <days>', summary: 'Days without a pull, at most 90; default: 30' },
    {
      flags: '--except <identity>',
      summary: 'Ignore pulls of this identity, such as a scanner: its name, GROUP/NAME or uid; may be repeated',
      repeat: true,
    },
    outputOption,
  ],
  async run(api, options) {
    const { repo } = await imageNamed(api, options.repository)
    const given = (options.except ?? []) as readonly string[]
    const except = await Promise.all(given.map(async (one) => findIdentity(api, one)))
    const query = { days: options.days as string | undefined, except }
    const path = `/registry/v2/repos/${repo}/unpulled`
    const { items, more } = await api.selected<UnpulledDigestJson>(path, 'digests', query)
    const rows = items.map((one) => [
      one.digest,
      (one.tags ?? []).join(' '),
      one.lastPullTime,
      one.lastPullTime && nameOf({ caller: one.lastPuller ?? '', callerName: one.lastPullerName ?? '' }),
      one.safe ? 'yes' : whyNot(one),
    ])
    return { json: { items }, head: ['DIGEST', 'TAGS', 'LAST PULL', 'BY', 'SAFE'], rows, more }
  },
})

function whyNot({ partOf = '', keptBy, keptUntil }: UnpulledDigestJson): string {
  if (partOf !== '') return `no: part of ${partOf}`
  return `no: ${keptBy ?? ''}${keptUntil === undefined ? '' : ` until ${keptUntil}`}`
}
