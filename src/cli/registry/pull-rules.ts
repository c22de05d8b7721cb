// Pull rules: the minimum age of tags that identities can pull.
import type { ApiReader } from '../framework/api-reader.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Commands, Options } from '../framework/command.ts'
import { actorsOf, findIdentity, groupOf, namesOf } from '../framework/names.ts'
import type { Field } from '../framework/verbs.ts'
import { exceptionCommands, ruleCommands, ruleNamed } from './rules.ts'

type Rule = {
  uid: string
  name: string
  tags: string[]
  exceptTags: string[]
  identities: string[]
  belowGroup: string
  minAge: string
  mode: string
}

const kind = {
  path: '/registry/v2/pullRules',
  member: 'pullRules',
  words: ['pull rule', 'pull rules'],
  list: 'pinfold images repos pull-rules list',
} as const

export const pullRuleNamed = ruleNamed(kind)

const listed = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
const constant = (_: ApiReader, word: string): string => word.toUpperCase().replace('-', '_')

const fields: readonly Field[] = [
  { flags: '--name <name>', summary: 'What it is called' },
  {
    flags: '--tags <patterns>',
    summary: 'Only these tags, with commas; * stands for any characters',
    read: (_, text) => listed(text),
  },
  { flags: '--except-tags <patterns>', summary: 'Not these tags', read: (_, text) => listed(text) },
  {
    flags: '--identities <names>',
    summary: 'For these identities, by name, GROUP/NAME or uid, with commas',
    read: (api, text) => Promise.all(listed(text).map((one) => findIdentity(api, one))),
  },
  {
    flags: '--below <group>',
    summary: 'For all identities that live in this group, and below',
    member: 'belowGroup',
    read: groupOf,
  },
  { flags: '--min-age <span>', summary: 'How long it has to have been a tag: 12h, 7d, 2w' },
  { flags: '--hold <span>', summary: 'A stay that ended after less does not count; 6h unless given' },
  {
    flags: '--count-from <where>',
    summary: 'Under the tag that is pulled, or any of the repository',
    choices: ['tag', 'repo'],
    read: constant,
  },
  {
    flags: '--mode <mode>',
    summary: 'What happens to what is too young',
    choices: ['serve-older', 'deny', 'observe'],
    read: constant,
  },
]

export const pullRules: Commands = {
  ...ruleCommands<Rule>({
    ...kind,
    word: 'rule',
    fields,
    head: ['UID', 'NAME', 'AGE', 'MODE', 'TAGS', 'FOR'],
    rows,
    create: {
      details: `They get only what has been a tag for long enough, by whatever name they pull it. It is meant for identities that run
images, not for those that push them. Of several rules the one with the largest age counts.`,
      check: checkRule,
      usual: { mode: 'SERVE_OLDER' },
    },
  }),
  ...exceptionCommands({
    path: '/registry/v2/pullRuleExceptions',
    member: 'pullRuleExceptions',
    days: 30,
    command: 'pinfold images repos pull-rules',
  }),
}

function checkRule({ minAge, identities, below }: Options): void {
  if (minAge === undefined) throw usageError('say how old it has to be, by --min-age')
  if ((identities === undefined) === (below === undefined)) {
    throw usageError('say for whom, by --identities or by --below, and not by both')
  }
}

async function rows(api: ApiReader, rules: readonly Rule[]): Promise<string[][]> {
  const groups = await namesOf(
    api,
    rules.map(({ belowGroup }) => belowGroup),
    [],
  )
  const actors = await actorsOf(
    api,
    rules.flatMap(({ identities }) => identities),
  )
  return rules.map(({ uid, name, minAge, mode, tags, exceptTags, belowGroup, identities }) => [
    uid,
    name,
    minAge,
    mode.toLowerCase().replace('_', '-'),
    [...tags, ...exceptTags.map((tag) => `not ${tag}`)].join(' '),
    belowGroup ? groups.path(belowGroup) : identities.map((one) => actors.get(one) ?? one).join(' '),
  ])
}
