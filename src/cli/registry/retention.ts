// Commands for retention policies, tag protection rules, legal holds and quarantine.
import type { HoldJson, RetentionRuleJson, TagRuleJson } from '#gen/pinfold/control/registry/v1/retention_pb.ts'
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
import { planCommands } from './retained/retention-plans.ts'
import { endedOption, ruleNamed, scopeNamed } from './rules.ts'

const parentSpec: OptionSpec = {
  flags: '--in <scope>',
  summary: 'Organization, folder or repository: ORG, ORG/FOLDER, ORG/NAME or a uid',
  required: true,
  former: ['--parent <scope>'],
  default: 'parent',
}

const tagFields: readonly Field[] = [
  {
    flags: '--tag <pattern>',
    summary: 'Only these tags, such as stable or v1.*; * matches any characters; default: all tags; may be repeated',
    member: 'tags',
    list: true,
  },
  { flags: '--except <pattern>', summary: 'Exclude these tags; may be repeated', member: 'exceptTags', list: true },
]

const where = ({ uid }: Item, names: Names): string => names.path(groupAbove(uid))

/** Properties that all kinds of rules share. */
const common = {
  word: 'RULE',
  json: v1(),
  parent: scopeNamed,
  mentions: ({ uid }: Item) => ({ groups: [groupAbove(uid)], repos: [groupAbove(uid)] }),
  at: (item: Item & { name?: string }, names: Names) => `${where(item, names)}/${item.name || item.uid}`,
} as const

const ruleKind = {
  path: '/registry/v2/retentionRules',
  member: 'retentionRules',
  words: ['retention policy', 'retention policies'],
  list: 'pinfold policies retention list',
} as const

const rule: Resource<Item & RetentionRuleJson> = {
  ...common,
  ...ruleKind,
  find: ruleNamed(ruleKind),
  fields: [
    { flags: '--name <name>', summary: 'New name', only: 'update' },
    ...tagFields,
    {
      flags: '--keep-days-after <days>',
      summary: 'Days to keep a digest after a tag of the policy no longer has it',
      read: wholeNumber('--keep-days-after'),
    },
    {
      flags: '--keep-last <count>',
      summary: 'Number of latest digests of these tags in a repository to keep, regardless of their age',
      read: wholeNumber('--keep-last'),
    },
    { flags: '--forever', summary: 'Keep all digests that such a tag has had, without an end' },
    {
      flags: '--untagged-days <days>',
      summary: 'Days to keep a manifest that was pushed without a tag',
      read: wholeNumber('--untagged-days'),
    },
    {
      flags: '--mode <mode>',
      summary: 'Effect: set dates and refuse earlier deletions (enforce), only report (dry-run), or none (off)',
      required: true,
      choices: ['off', 'dry-run', 'enforce'],
      read: (_, mode) => mode.toUpperCase().replace('-', '_'),
    },
  ],
  columns: {
    UID: ({ uid }) => uid,
    NAME: ({ name }) => name,
    WHERE: where,
    TAGS: ({ tags = [] }) => tags.join(' '),
    MODE: ({ mode }) => mode?.toLowerCase().replace('_', '-'),
    KEEPS: keeps,
  },
  more: { EXCEPT: ({ exceptTags = [] }) => exceptTags.join(' ') },
  label: ({ uid, name }) => name || uid,
}

function keeps({ forever, keepDaysAfter, keepLast, untaggedDays }: RetentionRuleJson): string {
  const parts = [
    forever && 'forever',
    keepDaysAfter && `${keepDaysAfter} days`,
    keepLast && `last ${keepLast}`,
    untaggedDays && `${untaggedDays} days untagged`,
  ]
  return parts.filter(Boolean).join(', ')
}

const tagRuleKind = {
  path: '/registry/v2/tagRules',
  member: 'tagRules',
  words: ['tag protection rule', 'tag protection rules'],
  list: 'pinfold policies tag-protection list',
} as const

const tagRule: Resource<Item & TagRuleJson> = {
  ...common,
  ...tagRuleKind,
  find: ruleNamed(tagRuleKind),
  fields: [
    { flags: '--name <name>', summary: 'New name', only: 'update' },
    ...tagFields,
    { flags: '--immutable', summary: 'Make the tags immutable: nobody can update or delete them' },
    {
      flags: '--keep-listed',
      summary: 'Protect the manifests that the index of such a tag lists from individual deletion',
    },
    {
      flags: '--mover <identity>',
      summary: 'Only these identities can create, update or delete the tags: name, GROUP/NAME or uid; may be repeated',
      member: 'movers',
      list: true,
      read: findIdentity,
    },
  ],
  columns: {
    UID: ({ uid }) => uid,
    NAME: ({ name }) => name,
    WHERE: where,
    TAGS: ({ tags = [] }) => tags.join(' '),
    IMMUTABLE: ({ immutable = false }) => (immutable ? 'yes' : 'no'),
    MOVERS: ({ movers = [] }, names) => movers.map(names.of).join(' '),
  },
  more: {
    EXCEPT: ({ exceptTags = [] }) => exceptTags.join(' '),
    'KEEPS LISTED': ({ keepListed = false }) => (keepListed ? 'yes' : 'no'),
  },
  label: ({ uid, name }) => name || uid,
  mentions: (item) => ({ ...common.mentions(item), identities: item.movers ?? [] }),
}

type Mark = Item & HoldJson

const hold: Resource<Mark> = {
  ...common,
  find: onlyUid,
  word: 'HOLD',
  path: '/registry/v2/holds',
  member: 'holds',
  words: ['legal hold', 'legal holds'],
  fields: [
    { flags: '--digest <digest>', summary: 'Digest of the manifest to keep: sha256:…; required without --tag' },
    {
      flags: '--tag <pattern>',
      summary: 'Keep all digests that these tags have had, and protect the tags from deletion; may be repeated',
      member: 'tags',
      list: true,
    },
    { flags: '--reason <text>', summary: 'Reason', required: true },
  ],
  columns: {
    UID: ({ uid }) => uid,
    WHERE: where,
    DIGEST: ({ digest }) => digest,
    TAGS: ({ tags = [] }) => tags.join(' '),
    REASON: ({ reason }) => reason,
  },
  more: { BY: ({ actor = '' }, names) => names.of(actor), RELEASED: ({ releaseTime }) => releaseTime },
  label: ({ uid }) => uid,
  mentions: (item) => ({ ...common.mentions(item), identities: [item.actor ?? ''] }),
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
    { flags: '--digest <digest>', summary: 'Digest of the manifest: sha256:…', required: true },
    { flags: '--reason <text>', summary: 'Reason; users who pull the manifest see it', required: true },
  ],
}

const listed = {
  formerArgument: 'scope',
  summary: 'Only this organization, folder or repository: ORG, ORG/FOLDER, ORG/NAME or a uid',
  scope: 'scope_uid',
}

function releaseOf(resource: Resource<Mark>): Command {
  return apiCommand({
    arguments: [{ name: '<uid>', summary: 'Uid, as the list shows it' }],
    options: [outputOf(oneFormats)],
    async run(api, options) {
      const uid = await onlyUid(api, String(options.uid))
      const ended = (await api.call('POST', `${resource.path}/${uid}:release`, {})) as Mark
      return shownOne(api, resource, ended)
    },
  })
}

/** Command that quarantines one manifest. Its argument is the digest, since a quarantine has no name. */
const quarantineMade = apiCommand({
  arguments: [{ name: '<digest>', summary: 'Digest of the manifest: sha256:…', former: '--digest <digest>' }],
  options: [
    parentSpec,
    { flags: '--reason <text>', summary: 'Reason; users who pull the manifest see it', required: true },
    outputOf(oneFormats),
  ],
  async run(api, options) {
    const parent = await scopeNamed(api, String(options.in))
    const body = { digest: options.digest, reason: options.reason }
    const made = (await api.call('POST', `${quarantined.path}/${parent}:quarantine`, body)) as Mark
    return shownOne(api, quarantined, made)
  },
})

export const retentionRules: Commands = { ...verbsOf(rule, { parentSpec, listed }), ...planCommands }
export const tagRules = verbsOf(tagRule, { parentSpec, listed })

export const holds: Commands = {
  list: listOf(hold, listed),
  create: createOf(hold, { parentSpec, named: false }),
  release: releaseOf(hold),
}

export const quarantine: Commands = {
  list: listOf(quarantined, listed),
  create: quarantineMade,
  release: releaseOf(quarantined),
}
