// Formatting and parsing of console addresses.

/** Parts of an address: `/ui/HEAD/NAMES…/~/TAIL…?QUERY`. */
export type Route = { head: string; names: readonly string[]; tail: readonly string[]; query: URLSearchParams }

const base = '/ui/'

/** Parses an address. Returns undefined if it is not an address of the console. */
export function routeOf(pathname: string, search: string): Route | undefined {
  if (!pathname.startsWith(base) || ofServer.test(pathname)) return undefined
  const [first = '', ...rest] = pathname.slice(base.length).split('/')
  const parts = rest.filter((one) => one !== '').map(decoded)
  const mark = rest.filter((one) => one !== '').indexOf('~')
  const names = mark < 0 ? parts : parts.slice(0, mark)
  return { head: first, names, tail: mark < 0 ? [] : parts.slice(mark + 1), query: new URLSearchParams(search) }
}

/** Present address of each former page of a group. */
const formerTails: Record<string, string> = {
  access: 'members',
  why: 'members/explain',
  people: 'members/invitations',
  keyless: 'members/keyless',
  promises: 'policies/retention',
  pulls: 'policies/cooldown',
  gates: 'policies/admission',
  risks: 'policies/risks',
  policies: 'policies/admission',
  mirrors: 'integrations/mirrors',
  events: 'integrations/webhooks',
  integrations: 'integrations/webhooks',
}

/** Present path of a page that has moved. Undefined if the path is not a former one. */
export function movedPath(pathname: string): string | undefined {
  if (pathname === `${base}g` || pathname === `${base}g/`) return `${base}organizations`
  const [, group, tail] = /^(\/ui\/g\/.+?)\/~\/([a-z]+)\/?$/.exec(pathname) ?? []
  const present = tail === undefined ? undefined : formerTails[tail]
  return present === undefined ? undefined : `${group}/~/${present}`
}

/** Pages below `/ui/` that the server renders itself. */
const ofServer = /^\/ui\/(?:signin|sessions|signout|device|headless|enter|invite|api|assets)(?:\/|$)/

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const joined = (parts: readonly string[]): string => parts.map(encodeURIComponent).join('/')
type Search = Readonly<Record<string, string | number | undefined>>

function withSearch(path: string, search: Search = {}): string {
  const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return text === '' ? path : `${path}?${text}`
}

export const paths = {
  start: base,
  search: (q: string) => withSearch(`${base}search`, { q }),
  package: (name: string) => withSearch(`${base}package`, { name }),
  setup: `${base}setup`,
  organizations: `${base}organizations`,
  account: `${base}account`,
  advisories: `${base}advisories`,
  libraries: `${base}libraries`,
  sources: `${base}sources`,
  group: (names: readonly string[], ...tail: string[]) =>
    `${base}g/${joined(names)}${tail.length > 0 ? `/~/${joined(tail)}` : ''}`,
  repo: (names: readonly string[], ...tail: string[]) =>
    `${base}r/${joined(names)}${tail.length > 0 ? `/~/${joined(tail)}` : ''}`,
  tag: (names: readonly string[], tag: string, search: Search = {}) =>
    withSearch(`${base}r/${joined(names)}/~/tags/${encodeURIComponent(tag)}`, search),
  digest: (names: readonly string[], digest: string) => `${base}r/${joined(names)}/~/digests/${digest}`,
  diff: (names: readonly string[], older: string, newer: string) =>
    `${base}r/${joined(names)}/~/diff/${older}..${newer}`,
  /** Returns the same address with changed parameters. The value `undefined` removes a parameter. */
  with: ({ pathname, search }: { pathname: string; search: string }, changes: Search) =>
    withSearch(pathname, { ...Object.fromEntries(new URLSearchParams(search)), ...changes }),
}
