// Rules of how old what is pulled has to be.
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import {
  CliError,
  type Command,
  type Commands,
  exitCodes,
  type OptionSpec,
  type Options,
  outputOption,
} from '../shape/command.ts'
import { actorsOf, findIdentity, groupOf, namesOf } from '../shape/names.ts'
import { plain } from '../shape/plain-text.ts'
import { limitOf } from '../shape/verbs.ts'
import { commonOptions, show } from './image-options.ts'
import { exceptionCommands, placeOf, placeOptions, printMade, requiredPlaceOf } from './place-options.ts'
import { ruleNamed } from './rule-names.ts'

type Rule = {
  uid: string
  name: string
  tags: string[]
  exceptTags: string[]
  identities: string[]
  belowGroup: string
  minAge: string
  hold: string
  countFrom: string
  mode: string
}

const path = '/registry/v2/pullRules'
const fieldOptions: readonly OptionSpec[] = [
  { flags: '--name <name>', summary: 'What it is called' },
  { flags: '--tags <patterns>', summary: 'Only these tags, with commas; * stands for any characters' },
  { flags: '--except-tags <patterns>', summary: 'Not these tags' },
  { flags: '--identities <names>', summary: 'For these identities, by name, GROUP/NAME or uid, with commas' },
  { flags: '--below <group>', summary: 'For all identities that live in this group, and below' },
  { flags: '--min-age <span>', summary: 'How long it has to have been a tag: 12h, 7d, 2w' },
  { flags: '--hold <span>', summary: 'A stay that ended after less does not count; 6h unless given' },
  {
    flags: '--count-from <where>',
    summary: 'Under the tag that is pulled, or any of the repository',
    choices: ['tag', 'repo'],
  },
  {
    flags: '--mode <mode>',
    summary: 'What happens to what is too young',
    choices: ['serve-older', 'deny', 'observe'],
  },
]

export const pullRuleNamed = ruleNamed({
  path,
  member: 'pullRules',
  words: ['pull rule', 'pull rules'],
  list: 'pinfold images repos pull-rules list',
})
const which = { name: '<rule>', summary: 'Its name, GROUP/NAME where several have that name, or its uid' }

const listed = (text: Options[string]): string[] =>
  String(text)
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')

async function identitiesOf(api: ApiReader, given: readonly string[]): Promise<string[]> {
  return Promise.all(given.map((one) => findIdentity(api, one)))
}

/** The members that options name. */
async function bodyOf(api: ApiReader, options: Options): Promise<Record<string, unknown>> {
  const { name, tags, exceptTags, identities, below, minAge, hold, countFrom, mode } = options
  const given = {
    name,
    tags: tags === undefined ? undefined : listed(tags),
    exceptTags: exceptTags === undefined ? undefined : listed(exceptTags),
    identities: identities === undefined ? undefined : await identitiesOf(api, listed(identities)),
    belowGroup: below === undefined ? undefined : await groupOf(api, String(below)),
    minAge,
    hold,
    countFrom: countFrom === undefined ? undefined : String(countFrom).toUpperCase(),
    mode: mode === undefined ? undefined : String(mode).toUpperCase().replace('-', '_'),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

const list: Command = {
  options: [...placeOptions, ...commonOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const query = { scope_uid: await placeOf(api, options) }
    const { items, more } = await api.list<Rule>(path, 'pullRules', query, limitOf(options))
    const forWhom = await namesOfAll(api, options.output === 'json' ? [] : items)
    const rows = items.map((one) => [
      one.uid,
      one.name,
      one.minAge,
      one.mode.toLowerCase().replace('_', '-'),
      [...one.tags, ...one.exceptTags.map((tag) => `not ${tag}`)].join(' '),
      forWhom(one),
    ])
    return show(terminal, options, { items }, ['UID', 'NAME', 'AGE', 'MODE', 'TAGS', 'FOR'], rows, more)
  },
}

/** For whom a rule is, by name. */
async function namesOfAll(api: ApiReader, rules: readonly Rule[]): Promise<(rule: Rule) => string> {
  const groups = await namesOf(
    api,
    rules.map(({ belowGroup }) => belowGroup),
    [],
  )
  const actors = await actorsOf(
    api,
    rules.flatMap(({ identities }) => identities),
  )
  return ({ belowGroup, identities }) =>
    belowGroup ? groups.path(belowGroup) : identities.map((uid) => actors.get(uid) ?? uid).join(' ')
}

const create: Command = {
  details: `They get only what has been a tag for long enough, by whatever name they pull it. It is meant for identities that run
images, not for those that push them. Of several rules the one with the largest age counts.`,
  options: [...placeOptions, ...fieldOptions, outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    if (options.minAge === undefined) throw new CliError(exitCodes.usage, 'say how old it has to be, by --min-age')
    if ((options.identities === undefined) === (options.below === undefined)) {
      throw new CliError(exitCodes.usage, 'say for whom, by --identities or by --below, and not by both')
    }
    const body = { mode: 'SERVE_OLDER', ...(await bodyOf(api, options)) }
    const made = (await api.call('POST', `${path}/${await requiredPlaceOf(api, options)}`, body)) as Rule
    return printMade(terminal, options, made, `made the rule ${made.uid}`)
  },
}

const update: Command = {
  arguments: [which],
  options: [...fieldOptions, outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const body = await bodyOf(api, options)
    if (Object.keys(body).length === 0) throw new CliError(exitCodes.usage, 'say what to change')
    const made = (await api.call('PATCH', `${path}/${await pullRuleNamed(api, String(options.rule))}`, body)) as Rule
    return printMade(terminal, options, made, `changed the rule ${made.uid}`)
  },
}

const remove: Command = {
  arguments: [which],
  options: [...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const uid = await pullRuleNamed(api, String(options.rule))
    await api.call('DELETE', `${path}/${uid}`)
    terminal.print(plain(`deleted the rule ${uid}`))
    return exitCodes.ok
  },
}

const exceptions = exceptionCommands({
  path: '/registry/v2/pullRuleExceptions',
  member: 'pullRuleExceptions',
  days: 30,
  command: 'pinfold images repos pull-rules',
})

export const pullRules: Commands = { list, create, update, delete: remove, ...exceptions }
