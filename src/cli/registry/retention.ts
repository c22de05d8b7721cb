// Commands for retention rules, immutable tags, holds and quarantine.
import { apiCommand } from '../framework/api-pages.ts'
import type { Command, Commands, OptionSpec } from '../framework/command.ts'
import { findIdentity, groupAbove } from '../framework/names.ts'
import { type Item, type Names, oneFormats, outputOf, v1 } from '../framework/outputs.ts'
import {
  createOf,
  type Field,
  listOf,
  onlyUid,
  type Resource,
  shownOne,
  verbsOf,
  wholeNumber,
} from '../framework/verbs.ts'
import { planCommands } from './kept/retention-plans.ts'
import { endedOption, placeNamed, ruleNamed } from './rules.ts'

const place: OptionSpec = {
  flags: '--parent <place>',
  summary: 'The group, for all below it, or the repository in which it holds',
  required: true,
}

const tagFields: readonly Field[] = [
  {
    flags: '--tag <pattern>',
    summary: 'Only these tags: v1.* or stable; all unless given',
    member: 'tags',
    list: true,
  },
  { flags: '--except <pattern>', summary: 'Not these tags, written the same', member: 'exceptTags', list: true },
]

const where = ({ uid }: Item, names: Names): string => names.path(groupAbove(uid))

/** Parts that all of them share. */
const common = {
  word: 'RULE',
  json: v1(),
  parent: placeNamed,
  mentions: ({ uid }: Item) => ({ groups: [groupAbove(uid)], repos: [groupAbove(uid)] }),
  at: (item: Item & { name?: string }, names: Names) => `${where(item, names)}/${item.name || item.uid}`,
} as const

type Rule = Item & {
  name?: string
  tags?: string[]
  exceptTags?: string[]
  keepDaysAfter?: number
  keepLast?: number
  forever?: boolean
  untaggedDays?: number
  mode: string
}

const ruleKind = {
  path: '/registry/v2/retentionRules',
  member: 'retentionRules',
  words: ['retention rule', 'retention rules'],
  list: 'pinfold images retention list',
} as const

const rule: Resource<Rule> = {
  ...common,
  ...ruleKind,
  find: ruleNamed(ruleKind),
  fields: [
    { flags: '--name <name>', summary: 'Its new name', only: 'update' },
    ...tagFields,
    {
      flags: '--keep-days-after <days>',
      summary: 'After a tag has left a digest',
      read: wholeNumber('--keep-days-after'),
    },
    {
      flags: '--keep-last <count>',
      summary: 'Of the digests that such tags have had',
      read: wholeNumber('--keep-last'),
    },
    { flags: '--forever', summary: 'What was such a tag is kept for good' },
    { flags: '--untagged-days <days>', summary: 'For what never was a tag', read: wholeNumber('--untagged-days') },
    {
      flags: '--mode <mode>',
      summary: 'Only enforce gives dates, and refuses what would break them',
      required: true,
      choices: ['off', 'dry-run', 'enforce'],
      read: (_, mode) => mode.toUpperCase().replace('-', '_'),
    },
  ],
  columns: {
    UID: ({ uid }) => uid,
    NAME: ({ name = '' }) => name,
    WHERE: where,
    TAGS: ({ tags = [] }) => tags.join(' '),
    MODE: ({ mode }) => mode.toLowerCase().replace('_', '-'),
    KEEPS: keeps,
  },
  more: { EXCEPT: ({ exceptTags = [] }) => exceptTags.join(' ') },
  label: ({ uid, name = '' }) => name || uid,
}

function keeps({ forever, keepDaysAfter, keepLast, untaggedDays }: Rule): string {
  const parts = [
    forever && 'forever',
    keepDaysAfter && `${keepDaysAfter} days`,
    keepLast && `last ${keepLast}`,
    untaggedDays && `${untaggedDays} days untagged`,
  ]
  return parts.filter(Boolean).join(', ')
}

type TagRule = Item & {
  name?: string
  tags?: string[]
  exceptTags?: string[]
  immutable?: boolean
  movers?: string[]
  keepListed?: boolean
}

const tagRuleKind = {
  path: '/registry/v2/tagRules',
  member: 'tagRules',
  words: ['tag rule', 'tag rules'],
  list: 'pinfold images tag-rules list',
} as const

const tagRule: Resource<TagRule> = {
  ...common,
  ...tagRuleKind,
  find: ruleNamed(tagRuleKind),
  fields: [
    { flags: '--name <name>', summary: 'Its new name', only: 'update' },
    ...tagFields,
    { flags: '--immutable', summary: 'Such a tag keeps the digest that it has' },
    { flags: '--keep-listed', summary: 'What the index of such a tag lists cannot be deleted by itself' },
    {
      flags: '--mover <identity>',
      summary: 'Only these identities move such a tag: by name, GROUP/NAME or uid',
      member: 'movers',
      list: true,
      read: findIdentity,
    },
  ],
  columns: {
    UID: ({ uid }) => uid,
    NAME: ({ name = '' }) => name,
    WHERE: where,
    TAGS: ({ tags = [] }) => tags.join(' '),
    IMMUTABLE: ({ immutable = false }) => (immutable ? 'yes' : 'no'),
    MOVERS: ({ movers = [] }, names) => movers.map(names.of).join(' '),
  },
  more: {
    EXCEPT: ({ exceptTags = [] }) => exceptTags.join(' '),
    'KEEPS LISTED': ({ keepListed = false }) => (keepListed ? 'yes' : 'no'),
  },
  label: ({ uid, name = '' }) => name || uid,
  mentions: (item) => ({ ...common.mentions(item), identities: item.movers ?? [] }),
}

type Mark = Item & { digest?: string; tags?: string[]; reason: string; actor: string; releaseTime?: string }

const hold: Resource<Mark> = {
  ...common,
  find: onlyUid,
  word: 'HOLD',
  path: '/registry/v2/holds',
  member: 'holds',
  words: ['hold', 'holds'],
  fields: [
    { flags: '--digest <digest>', summary: 'The manifest that is kept' },
    { flags: '--tag <pattern>', summary: 'Or all that these tags have had', member: 'tags', list: true },
    { flags: '--reason <text>', summary: 'Why', required: true },
  ],
  columns: {
    UID: ({ uid }) => uid,
    WHERE: where,
    DIGEST: ({ digest = '' }) => digest,
    TAGS: ({ tags = [] }) => tags.join(' '),
    REASON: ({ reason }) => reason,
  },
  more: { BY: ({ actor }, names) => names.of(actor), RELEASED: ({ releaseTime = '' }) => releaseTime },
  label: ({ uid }) => uid,
  mentions: (item) => ({ ...common.mentions(item), identities: [item.actor] }),
  filters: [{ ...endedOption, query: () => ({ include_ended: 'true' }) }],
}

const { TAGS: _, ...quarantinedColumns } = hold.columns

const quarantined: Resource<Mark> = {
  ...hold,
  word: 'QUARANTINE',
  path: '/registry/v2/quarantined',
  member: 'quarantined',
  words: ['quarantine', 'quarantined manifests'],
  columns: quarantinedColumns,
  fields: [
    { flags: '--digest <digest>', summary: 'The manifest that nobody is to pull', required: true },
    { flags: '--reason <text>', summary: 'Why; whoever pulls it is told', required: true },
  ],
}

const listed = {
  argument: '[place]',
  summary: 'Only those of this group or repository, and below: ORG, ORG/FOLDER, ORG/NAME, or its uid',
  scope: 'scope_uid',
}

function releaseOf(resource: Resource<Mark>): Command {
  return apiCommand({
    arguments: [{ name: '<uid>', summary: 'Its uid, as the list shows it' }],
    options: [outputOf(oneFormats)],
    async run(api, options) {
      const uid = await onlyUid(api, String(options.uid))
      const ended = (await api.call('POST', `${resource.path}/${uid}:release`, {})) as Mark
      return shownOne(api, resource, ended)
    },
  })
}

/** A quarantine is created by a verb of its own. */
const quarantineMade = apiCommand({
  options: [
    place,
    ...quarantined.fields.map(({ flags, summary }) => ({ flags, summary, required: true as const })),
    outputOf(oneFormats),
  ],
  async run(api, options) {
    const parent = await placeNamed(api, String(options.parent))
    const body = { digest: options.digest, reason: options.reason }
    const made = (await api.call('POST', `${quarantined.path}/${parent}:quarantine`, body)) as Mark
    return shownOne(api, quarantined, made)
  },
})

export const retentionRules: Commands = { ...verbsOf(rule, { place, listed }), ...planCommands }
export const tagRules = verbsOf(tagRule, { place, listed })

export const holds: Commands = {
  list: listOf(hold, listed),
  create: createOf(hold, { place, named: false }),
  release: releaseOf(hold),
}

export const quarantine: Commands = {
  list: listOf(quarantined, listed),
  create: quarantineMade,
  release: releaseOf(quarantined),
}
