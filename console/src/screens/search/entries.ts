// Entries of the command palette: recent pages, pages, actions and results, in groups.
import { nounPath, usableNouns } from '../../app/nouns.ts'
import { canHere, organization } from '../../app/organization.ts'
import { paths } from '../../app/paths.ts'
import { recentPages } from '../../app/recent.ts'
import { can, me } from '../../app/session.ts'
import type { IconName } from '../../ui/icon.tsx'
import { searchWords } from '../../words/search.ts'
import { words } from '../../words.ts'
import { hrefOf, iconOf, type Kind, kinds, labelOf, type Result } from './results.ts'

export type Entry = {
  key: string
  icon: IconName
  label: string
  detail: string
  /** Page that the entry opens. Entries without a page have an action. */
  href: string
  kind?: Kind
  time?: string
}
export type EntryGroup = { name: string; entries: readonly Entry[] }

const entry = (icon: IconName, label: string, href: string, detail = ''): Entry => ({
  key: `${label} ${href}`,
  ...{ icon, label, href, detail },
})

/** Entries before the first letter: recent pages, then pages and actions that the user may use. */
export function startEntries(currentHref: string): EntryGroup[] {
  const recent = recentPages().filter(({ href }) => href !== currentHref)
  return withoutEmpty([
    { name: searchWords.recentGroup, entries: recent.slice(0, 6).map(({ href, title }) => entry('time', title, href)) },
    { name: searchWords.actionsGroup, entries: actions() },
    { name: searchWords.pagesGroup, entries: pages() },
  ])
}

/** Entries for a text: results by kind, then pages and actions whose name contains the text. */
export function foundEntries(q: string, results: readonly Result[], within: string): EntryGroup[] {
  const isNamed = ({ label }: Entry) => label.toLowerCase().includes(q.toLowerCase())
  const recent = recentPages().map(({ href }) => href)
  // A kind with a better match comes first. The results of a kind keep their order, but opened ones are first among equals.
  const order = [...new Set(results.map(({ kind }) => kind)), ...kinds]
  const groups = [...new Set(order)].map((kind) => {
    const found = results.filter((one) => one.kind === kind).map((one) => ({ one, entry: ofResult(one, within) }))
    const rank = ({ one: { match }, entry: { href } }: (typeof found)[number]) => [
      matches.indexOf(match),
      recent.includes(href) ? 0 : 1,
    ]
    const sorted = found.toSorted((a, b) => rank(a)[0]! - rank(b)[0]! || rank(a)[1]! - rank(b)[1]!)
    return { name: searchWords.kinds[kind], entries: sorted.map(({ entry }) => entry) }
  })
  return withoutEmpty([
    ...groups,
    { name: searchWords.actionsGroup, entries: actions().filter(isNamed) },
    { name: searchWords.pagesGroup, entries: pages().filter(isNamed) },
  ])
}

const matches = ['exact', 'prefix', 'word', 'part']

function ofResult(result: Result, within: string): Entry {
  const { kind, detail, updateTime } = result
  return {
    ...entry(iconOf[kind], labelOf(result, within), hrefOf(result), detail),
    kind,
    ...(updateTime !== undefined && { time: updateTime }),
  }
}

const withoutEmpty = (groups: readonly EntryGroup[]): EntryGroup[] => groups.filter(({ entries }) => entries.length > 0)

function pages(): Entry[] {
  const name = organization.value
  const ofOrganization = name === '' ? [] : usableNouns().map((noun) => ({ noun, href: nounPath(noun, [name]) }))
  return [
    ...ofOrganization.map(({ noun, href }) => entry(noun.icon, searchWords.goTo(words.nouns[noun.name]), href, name)),
    ...(me.isOperator ? [entry('server', searchWords.goTo(words.serverAdministration), paths.organizations)] : []),
    entry('user', searchWords.accountPage, paths.account),
  ]
}

/** Pages with a form, for users who may send it. */
function actions(): Entry[] {
  const names = [organization.value]
  const isIn = names[0] !== ''
  const wanted: [boolean, string, string][] = [
    [isIn && canHere('groups.create'), searchWords.createFolder, paths.group(names, 'repositories')],
    [isIn && canHere('group_invites.create'), searchWords.invite, paths.group(names, 'members', 'invitations')],
    [isIn && canHere('identity.create'), searchWords.keylessCi, paths.group(names, 'members', 'keyless')],
    [isIn && canHere('policies.policy.create'), searchWords.newPolicy, paths.group(names, 'policies', 'admission')],
    [
      isIn && canHere('subscriptions.create'),
      searchWords.createWebhook,
      paths.group(names, 'integrations', 'webhooks'),
    ],
  ]
  const here = wanted.filter(([may]) => may).map(([, label, href]) => entry('add', label, href, names[0]!))
  return [...here, ...(can('groups.create') ? [entry('add', searchWords.createOrganization, paths.organizations)] : [])]
}
