// What refers to an image, who pulls it, and what nobody does.
import { callerOptions } from '../shape/api-pages.ts'
import { CliError, type Command, exitCodes, type Options, outputOption, type Terminal } from '../shape/command.ts'
import { findIdentity } from '../shape/names.ts'
import { limitOf } from '../shape/verbs.ts'
import { commonOptions, imageOf, show, withDigest } from './image-options.ts'

const image = {
  name: '<image>',
  summary: 'Such as acme/team/app:1.0 or acme/app@sha256:…; latest without a tag or --digest',
}
const digestOption = { flags: '--digest <digest>', summary: 'This digest, whatever its tags' }

type Referrer = { digest: string; mediaType?: string; artifactType?: string; size?: string }
type Puller = { caller?: string; callerName?: string; lastTime: string; gets?: string; checks?: string }

/** The digest that is asked about, and where the API tells of it. */
async function digestOf(terminal: Terminal, asked: Options) {
  const options = withDigest(asked)
  const { api, path, repo, tag = 'latest' } = await imageOf(terminal, options)
  const given = options.digest as string | undefined
  const where = `/registry/v2/repos/${repo}`
  const resolved = given ? {} : await api.call('GET', `${where}/resolvedTags/${encodeURIComponent(tag)}`)
  const digest = given ?? (resolved as { chosen?: { digest: string } }).chosen?.digest
  if (digest === undefined) throw new CliError(exitCodes.failed, `${path} has no image with the tag ${tag}`)
  return { api, at: `${where}/digests/${encodeURIComponent(digest)}` }
}

export const imagesReferrers: Command = {
  arguments: [image],
  options: [digestOption, ...commonOptions],
  async run(terminal, options) {
    const { api, at } = await digestOf(terminal, options)
    const { items, more } = await api.list<Referrer>(`${at}/referrers`, 'referrers', {}, limitOf(options))
    const rows = items.map((one) => [one.digest, one.artifactType ?? '', one.mediaType ?? '', one.size ?? '0'])
    return show(terminal, options, { items }, ['DIGEST', 'ARTIFACT TYPE', 'MEDIA TYPE', 'BYTES'], rows, more)
  },
}

export const imagesPulls: Command = {
  arguments: [image],
  options: [digestOption, outputOption, ...callerOptions],
  async run(terminal, options) {
    const { api, at } = await digestOf(terminal, options)
    const found = (await api.call('GET', `${at}/pulls`)) as { lastTime?: string; pullers?: Puller[] }
    const rows = (found.pullers ?? []).map((one) => [one.lastTime, nameOf(one), one.gets ?? '0', one.checks ?? '0'])
    if (rows.length === 0) terminal.say(`pinfold: the last pull that is known of: ${found.lastTime ?? 'none'}`)
    return show(terminal, options, found, ['LAST', 'BY', 'PULLED', 'ASKED FOR'], rows, false)
  },
}

function nameOf({ caller = '', callerName = '' }: Pick<Puller, 'caller' | 'callerName'>): string {
  if (caller === '') return 'nobody who said who they are'
  return caller === '*' ? 'others' : callerName || caller
}

type Unpulled = {
  digest: string
  tags?: string[]
  lastPullTime?: string
  lastPuller?: string
  lastPullerName?: string
  partOf?: string
  keptBy?: string
  keptUntil?: string
  safe?: boolean
}

export const imagesUnpulled: Command = {
  details: `Only pulls are known here: a node that runs an image which it has already asks for nothing. What a HEAD has asked for was not
pulled. SAFE is "yes" where nothing keeps the manifest and it is part of nothing else in the repository; it deletes nothing.`,
  arguments: [{ name: '<repository>', summary: 'Such as acme/team/app' }],
  options: [
    { flags: '--days <days>', summary: 'For how many days, 90 at most; 30 unless given' },
    {
      flags: '--except <identity>',
      summary: 'Pulls of this identity, by name or uid, do not count, such as those of a scanner; may be repeated',
      repeat: true,
    },
    ...commonOptions,
  ],
  async run(terminal, options) {
    const { api, repo } = await imageOf(terminal, { ...options, image: options.repository })
    const given = (options.except ?? []) as readonly string[]
    const except = await Promise.all(given.map((one) => findIdentity(api, one)))
    const query = { days: options.days as string | undefined, except }
    const { items, more } = await api.list<Unpulled>(
      `/registry/v2/repos/${repo}/unpulled`,
      'digests',
      query,
      limitOf(options),
    )
    const rows = items.map((one) => [
      one.digest,
      (one.tags ?? []).join(' '),
      one.lastPullTime ?? '',
      one.lastPullTime ? nameOf({ caller: one.lastPuller ?? '', callerName: one.lastPullerName ?? '' }) : '',
      one.safe ? 'yes' : whyNot(one),
    ])
    return show(terminal, options, { items }, ['DIGEST', 'TAGS', 'LAST PULL', 'BY', 'SAFE'], rows, more)
  },
}

function whyNot({ partOf = '', keptBy = '', keptUntil }: Unpulled): string {
  if (partOf !== '') return `no: part of ${partOf}`
  return `no: ${keptBy}${keptUntil === undefined ? '' : ` until ${keptUntil}`}`
}
