// Commands for cooldown policies, which set a minimum age for the tags that some identities can pull.
import type { PullRuleJson } from '#gen/pinfold/control/registry/v1/pull_rules_pb.ts'
import type { Row } from '#lib/terminal/plain-text.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Commands, Options } from '../framework/command.ts'
import { findIdentity, groupOf, namesOf } from '../framework/names.ts'
import type { Field } from '../framework/verbs.ts'
import { constant, exceptionCommands, ruleCommands, ruleNamed } from './rules.ts'

const kind = {
  path: '/registry/v2/pullRules',
  member: 'pullRules',
  words: ['cooldown policy', 'cooldown policies'],
  list: 'pinfold policies cooldown list',
} as const

export const pullRuleNamed = ruleNamed(kind)

const listed = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')

const fields: readonly Field[] = [
  { flags: '--name <name>', summary: 'Name of the policy' },
  {
    flags: '--tags <patterns>',
    summary: 'Only these tags, separated by commas; * matches any characters; default: all tags',
    read: (_, text) => listed(text),
  },
  {
    flags: '--except-tags <patterns>',
    summary: 'Exclude these tags, separated by commas',
    read: (_, text) => listed(text),
  },
  {
    flags: '--identities <names>',
    summary: 'Identities that the policy applies to, separated by commas: name, GROUP/NAME or uid',
    read: (api, text) => Promise.all(listed(text).map(async (one) => findIdentity(api, one))),
  },
  {
    flags: '--below <group>',
    summary: 'Apply to all identities of this organization or folder, and of all folders below',
    member: 'belowGroup',
    read: groupOf,
  },
  {
    flags: '--min-age <span>',
    summary: 'Minimum age: time since the digest was assigned to the tag, such as 12h, 7d or 2w',
  },
  { flags: '--hold <span>', summary: 'Ignore assignments that were replaced within this time; default: 6h' },
  {
    flags: '--count-from <where>',
    summary: 'Measure the age under the pulled tag (tag), or under any tag of the repository (repo); default: tag',
    choices: ['tag', 'repo'],
    read: constant,
  },
  {
    flags: '--mode <mode>',
    summary:
      'Pulls of images below the minimum age: get an older digest (serve-older), fail (deny), or are only reported (observe); default for a new policy: serve-older',
    choices: ['serve-older', 'deny', 'observe'],
    read: constant,
  },
]

export const pullRules: Commands = {
  ...ruleCommands<PullRuleJson>({
    ...kind,
    word: 'cooldown policy',
    fields,
    head: ['UID', 'NAME', 'AGE', 'MODE', 'TAGS', 'FOR'],
    rows,
    create: {
      details: `The identities of the policy can only pull images that have had their tag for the minimum age, also by digest. Use it for
identities that run images, not for those that push them. If several policies apply, the largest minimum age counts.`,
      check: checkRule,
      usual: { mode: 'SERVE_OLDER' },
    },
  }),
  ...exceptionCommands({
    path: '/registry/v2/pullRuleExceptions',
    member: 'pullRuleExceptions',
    days: 30,
    command: 'pinfold policies cooldown',
  }),
}

function checkRule({ minAge, identities, below }: Options): void {
  if (minAge === undefined) throw usageError('no policy was created: --min-age is required, such as --min-age 7d')
  if ((identities === undefined) === (below === undefined)) {
    throw usageError('no policy was created: give either --identities or --below')
  }
}

async function rows(api: ApiReader, rules: readonly PullRuleJson[]): Promise<Row[]> {
  const names = await namesOf(api, {
    groups: rules.map(({ belowGroup = '' }) => belowGroup),
    identities: rules.flatMap(({ identities = [] }) => identities),
  })
  return rules.map(({ uid, name, minAge, mode, tags = [], exceptTags = [], belowGroup, identities = [] }) => [
    uid,
    name,
    minAge,
    mode?.toLowerCase().replace('_', '-'),
    [...tags, ...exceptTags.map((tag) => `not ${tag}`)].join(' '),
    belowGroup ? names.path(belowGroup) : identities.map(names.of).join(' '),
  ])
}
